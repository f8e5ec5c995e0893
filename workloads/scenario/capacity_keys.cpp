#include "workloads/scenario/capacity_keys.h"

#include <array>

#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"
#include "workloads/training/layers/lowering.h"

namespace moebius {
namespace {

constexpr std::array kExpertBuffers{
    Named<ExpertBuffers>{"rows", ExpertBuffers::kRows, "as many rows as came"},
    Named<ExpertBuffers>{"padded", ExpertBuffers::kPadded,
                         "filled up to the capacity: as many rows travel and are multiplied, whoever is "
                         "chosen (Megatron-Core, --moe-pad-expert-input-to-capacity); simulated only"},
    Named<ExpertBuffers>{"one-hot", ExpertBuffers::kOneHot,
                         "likewise, and rows are put there and taken out by products with one-hot masks "
                         "(GShard, DeepSpeed-MoE, MaxText); simulated only"},
};

constexpr std::array kCapacityTokens{
    Named<bool>{"microbatch", false, "all that a rank has of a microbatch"},
    Named<bool>{"sequence", true, "what it has of each sequence, one by one"},
};

// Kernels that send a token once to a node or rank find out how many come; buffers of fixed sizes go by the
// library's all-to-all, or nowhere.
bool can_fill(const TrainingPlan& plan) {
  return plan.exchange == Algorithm::kLibrary || (plan.ep == 1 && plan.exchange == Algorithm::kAuto);
}

}  // namespace

void read_capacity(Section& section, TrainingPlan& plan) {
  plan.capacity = section.number("capacity", {0, 1024}, 0,
                                 "most copies that an expert takes of one rank's tokens, in parts of the "
                                 "mean; what is over it is dropped; 0: all");
  const bool limited = plan.capacity > 0;
  const bool filled = limited && can_fill(plan);
  plan.capacity_of_sequence = section.choice<bool>(
      "capacity_of", kCapacityTokens, limited && plan.capacity_of_sequence, "tokens whose mean that is");
  section.allow_only("capacity_of", limited || !plan.capacity_of_sequence, "a \"capacity\"");
  plan.expert_buffers = section.choice<ExpertBuffers>(
      "buffers", kExpertBuffers, filled ? plan.expert_buffers : ExpertBuffers::kRows,
      "rows that experts compute where their `capacity` is limited");
  if (plan.fills_buffers() && !limited)
    section.place_of("buffers").fail("buffers are filled up to a `capacity` above 0, found 0");
}

void check_buffers(const Scenario& scenario, const Document& document) {
  const TrainingPlan& plan = scenario.plan;
  const TrainingWorkload& work = scenario.training;
  if (!plan.fills_buffers()) return;
  if (!can_fill(plan))
    place_at(document, "/plan/ep/buffers")
        .fail(fmt::format("buffers of fixed sizes travel by the library's all-to-all: expected "
                          "/plan/ep/dispatch \"all-to-all\", found \"{}\"",
                          dispatch_name(plan.exchange)));
  const LoweringInput input{.model = &scenario.model, .plan = &plan, .workload = &work};
  const ExpertCapacity capacity =
      capacity_of(plan, scenario.model.experts, tokens_per_rank(input), work.micro_batch);
  const double rows = static_cast<double>(capacity.of_rank()) * scenario.model.experts.routed *
                      plan.expert_ranks();
  constexpr double kMost = 2147483647;
  if (rows > kMost)
    place_at(document, "/plan/ep/capacity")
        .fail(fmt::format("{} experts take {} rows each of each of {} ranks: expected at most {:.0f} rows in "
                          "all, found {:.0f}",
                          scenario.model.experts.routed, capacity.of_rank(), plan.expert_ranks(), kMost,
                          rows));
}

}  // namespace moebius
