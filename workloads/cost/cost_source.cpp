#include "workloads/cost/cost_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/clock_power.h"
#include "workloads/cost/fused_quantise.h"
#include "workloads/cost/power.h"
#include "workloads/cost/profile_kinds.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/serving_ops.h"
#include "workloads/cost/table.h"
#include "workloads/cost/windowed_attention.h"

namespace moebius {
namespace {

void check_is_compute(const CostQuery& query) {
  CHECK(!is_communication(query.kind), fmt::format("no compute cost of {}", to_string(query.kind)));
}

// A chip of an architecture that nobody has described: the bound itself, and no trust in it.
class RooflineSource : public CostSource {
 public:
  explicit RooflineSource(Accelerator accelerator) : accelerator_(std::move(accelerator)) {}

  Cost cost(const CostQuery& query) const override {
    check_is_compute(query);
    const double floor = accelerator_.kernel_floor.seconds();
    Cost cost{.seconds = std::max(floor, roofline(accelerator_, query).seconds()),
              .origin = Origin::kRoofline,
              .error = 1.0F,
              .memory_bytes = least_bytes(query)};
    const auto quantise = query.fused_quantise ? quantise_of(query) : std::nullopt;
    if (!quantise) return cost;
    const Cost pass = this->cost(*quantise);
    cost.seconds += pass.seconds;
    cost.memory_bytes += pass.memory_bytes;
    return cost;
  }
  std::string description() const override { return fmt::format("roofline of {}", accelerator_.id); }

 private:
  Accelerator accelerator_;
};

// A product of one expert is one of a matrix, which more tables know and know better.
CostQuery as_one_matrix(const CostQuery& query) {
  CostQuery one = query;
  if (query.shape.groups != 1 || query.rows.size() > 1) return one;
  if (query.kind == OpKind::kGroupedGemm) one.kind = OpKind::kGemm;
  if (query.kind == OpKind::kGroupedGemmDgrad) one.kind = OpKind::kGemmDgrad;
  if (one.kind == query.kind) return one;
  one.shape = loaded_shape(query);
  one.shape.groups = 0;
  one.rows = {};
  return one;
}

// Of a board whose clock the machine lowers as the work around an op wants it, the kernel alone runs as under
// the limit of the profile's board: a lower limit would count twice.
Accelerator timed_at_full_power(Accelerator chip, const std::vector<Profile>& profiles) {
  if (clock_power(chip, profiles).limit > 0) chip.power = profile_with_power(profiles)->reference.power;
  return chip;
}

// Measured tables over the analytic model, at the sustained clock. How far products that draw more than the
// board may lower it further is said by the work around them (clock_power.h).
class LayeredSource : public CostSource {
 public:
  LayeredSource(const Accelerator& accelerator, const std::vector<Profile>& profiles, std::string_view stack)
      : model_(timed_at_full_power(accelerator, profiles)),
        tables_(profiles, stack),
        power_(accelerator, profiles),
        name_(accelerator.id) {
    stacks_ = stack;
    for (const std::string& known : tables_.stacks())
      if (stack.empty()) stacks_ += (stacks_.empty() ? "" : ", ") + known;
  }

  Cost cost(const CostQuery& asked) const override {
    check_is_compute(asked);
    const CostQuery query = cut_to_sequence(priced_as(as_one_matrix(asked)));
    Cost cost = timed(query);
    cost.watts = power_.watts(query, cost);
    return cost;
  }

  std::string description() const override {
    const std::string analytic = fmt::format("analytic ({})", model_.engine().architecture->name);
    return stacks_.empty() ? analytic : fmt::format("profile {} ({}) over {}", name_, stacks_, analytic);
  }

 private:
  Cost timed(const CostQuery& query) const {
    if (const auto measured = tables_.cost(model_, query, Clocks::kSustained)) return *measured;
    const Estimate estimate = model_.estimate(query, Clocks::kSustained);
    const Estimate pass =
        query.fused_quantise ? tables_.quantise(model_, query, Clocks::kSustained) : Estimate{};
    return {.seconds = estimate.seconds + pass.seconds,
            .origin = Origin::kAnalytic,
            .error = model_.error(query),
            .memory_bytes = estimate.memory_bytes + pass.memory_bytes};
  }

  AnalyticModel model_;
  MeasuredTables tables_;
  BoardPower power_;
  std::string name_, stacks_;
};

}  // namespace

std::unique_ptr<CostSource> make_cost_source(const Accelerator& accelerator, const std::string& data_dir,
                                             std::string_view stack) {
  const std::vector<Profile> profiles = find_profiles(accelerator, data_dir);
  require_known_kinds(profiles, data_dir);
  return make_cost_source(accelerator, profiles, stack);
}

std::unique_ptr<CostSource> make_cost_source(const Accelerator& accelerator,
                                             const std::vector<Profile>& profiles, std::string_view stack) {
  if (!stack.empty() && profiles.empty())
    throw input_error(fmt::format("no profile of {}: the stack \"{}\" is unknown", accelerator.id, stack));
  if (find_architecture(accelerator.architecture) == nullptr)
    return std::make_unique<RooflineSource>(accelerator);
  return std::make_unique<LayeredSource>(accelerator, profiles, stack);
}

}  // namespace moebius
