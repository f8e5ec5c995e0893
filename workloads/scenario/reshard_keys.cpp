#include "workloads/scenario/reshard_keys.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"
#include "workloads/training/state/sharding.h"

namespace moebius {
namespace {

constexpr std::array kGradientsBetween{
    Named<Accumulation>{"shards", Accumulation::kShards,
                        "each microbatch's are summed over the replicas, into shards"},
    Named<Accumulation>{"whole", Accumulation::kWhole,
                        "whole on each rank, as precision/gradients says, and summed with the last "
                        "microbatch (FSDP2's set_requires_gradient_sync)"},
    Named<Accumulation>{"whole-bf16", Accumulation::kWholeBf16,
                        "the same in BF16, and cast where they are summed (FSDP1's no_sync)"},
};

std::string_view text_of_sums(Accumulation accumulation) {
  for (const Named<Accumulation>& row : kGradientsBetween)
    if (row.value == accumulation) return row.name;
  return "";
}

void read_after_forward(Section& section, TrainingPlan& plan) {
  const DescriptionPtr form = description_of(
      "",
      "zero 3: behind a forward pass gathered weights go back to the shards of all (true), stay whole on "
      "each rank until the backward pass (false), or one copy of them stands among so many neighbours");
  set_keyword(form->keywords, "type", array_value({text_value("boolean"), text_value("integer")}));
  set_keyword(form->keywords, "default", boolean_value(true));
  const Value* value = section.value("reshard_after_forward", false, form);
  if (value == nullptr) return;
  if (value->kind == Value::Kind::kBoolean) {
    plan.regather = value->boolean ? 0 : 1;
    return;
  }
  const bool is_number = value->kind == Value::Kind::kInteger || value->kind == Value::Kind::kNumber;
  const bool counts = is_number && value->number >= 2 && value->number <= 1 << 20 &&
                      value->number == std::floor(value->number);
  if (!counts)
    section.place_of("reshard_after_forward")
        .fail("expected true, false or a number of ranks from 2 on, found " + value->excerpt());
  plan.regather = static_cast<int>(value->number);
}

class ReshardChecks {
 public:
  ReshardChecks(const Scenario& scenario, const Document& document)
      : plan_(scenario.plan), work_(scenario.training), scenario_(scenario), document_(document) {}

  void run() const {
    if (plan_.accumulation != Accumulation::kShards) gradients();
    if (plan_.regather != 0) after_forward();
    if (!plan_.free_after_backward) after_backward();
  }

 private:
  template <class... Args>
  void require(bool holds, const char* pointer, fmt::format_string<Args...> sentence, Args&&... args) const {
    if (!holds) place_at(document_, pointer).fail(fmt::format(sentence, std::forward<Args>(args)...));
  }

  // Scoring has no reverse pass: what these say of one counts for nothing there, as recomputation does.
  bool several_microbatches() const { return work_.forward_only || work_.num_microbatches(plan_) > 1; }

  void gradients() const {
    const char* at = "/plan/dp/accumulate";
    const std::string_view found = text_of_sums(plan_.accumulation);
    require(plan_.zero >= 2, at,
            "zero {} keeps gradients whole and sums them once a step: expected \"shards\", found \"{}\"",
            plan_.zero, found);
    require(several_microbatches(), at,
            "a step of one microbatch sums its gradients once: expected \"shards\", found \"{}\"", found);
    require(plan_.accumulation != Accumulation::kWholeBf16 || plan_.gradients != DType::kBf16, at,
            "gradients are in BF16 with /plan/precision/gradients \"bf16\": expected \"whole\", found \"{}\"",
            found);
  }

  std::string after_forward_text() const {
    return plan_.regather == 1 ? "false" : fmt::format("{}", plan_.regather);
  }

  void after_forward() const {
    const char* at = "/plan/dp/reshard_after_forward";
    require(plan_.zero == 3, at, "zero {} shards no parameters: expected true, found {}", plan_.zero,
            after_forward_text());
    const bool pairs = plan_.overlap_two_batch || plan_.schedule == PipelineKind::kDualPipeV;
    require(!pairs || (plan_.regather == 1 && !plan_.free_after_backward), at,
            "of forward and backward passes side by side one would free what the other uses: expected true, "
            "or false with reshard_after_backward false, found {}",
            after_forward_text());
    if (plan_.regather == 1) return;
    const int dense = num_shards(plan_, false), experts = num_shards(plan_, true), few = plan_.regather;
    require(few < dense && dense % few == 0, at,
            "{} ranks that hold a copy between passes do not divide the {} that weights are cut over", few,
            dense);
    require(scenario_.model.experts.routed == 0 || experts <= few || experts % few == 0, at,
            "{} ranks that hold a copy between passes do not divide the {} that experts are cut over", few,
            experts);
  }

  void after_backward() const {
    const char* at = "/plan/dp/reshard_after_backward";
    require(plan_.zero == 3, at, "zero {} shards no parameters: expected true, found false", plan_.zero);
    require(plan_.regather == 1, at,
            "weights that do not stay whole behind forward passes cannot stay so behind backward passes: "
            "expected true, or reshard_after_forward false, found false");
    require(several_microbatches(), at,
            "a step of one microbatch has one backward pass: expected true, found false");
  }

  const TrainingPlan& plan_;
  const TrainingWorkload& work_;
  const Scenario& scenario_;
  const Document& document_;
};

}  // namespace

void read_resharding(Section& section, TrainingPlan& plan) {
  plan.accumulation =
      section.choice<Accumulation>("accumulate", kGradientsBetween, Accumulation::kShards,
                                   "zero 2 and 3: how gradients gather over the microbatches of a step");
  read_after_forward(section, plan);
  plan.free_after_backward = section.boolean(
      "reshard_after_backward", true,
      "zero 3 with reshard_after_forward false: weights are freed behind each backward pass and gathered for "
      "the next microbatch; false: behind the last one of a step (FSDP2's set_reshard_after_backward)");
}

void check_resharding(const Scenario& scenario, const Document& document) {
  ReshardChecks(scenario, document).run();
}

}  // namespace moebius
