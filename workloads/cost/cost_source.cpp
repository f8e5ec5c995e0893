#include "workloads/cost/cost_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/roofline.h"

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
    return {.seconds = std::max(floor, roofline(accelerator_, query).seconds()),
            .origin = Origin::kRoofline,
            .error = 1.0F,
            .memory_bytes = least_bytes(query)};
  }
  std::string description() const override { return fmt::format("roofline of {}", accelerator_.id); }

 private:
  Accelerator accelerator_;
};

// Chips in service run at their power limit: the sustained clock.
class AnalyticSource : public CostSource {
 public:
  explicit AnalyticSource(const Accelerator& accelerator) : model_(accelerator) {}

  Cost cost(const CostQuery& query) const override {
    check_is_compute(query);
    const Estimate estimate = model_.estimate(query, Clocks::kSustained);
    return {.seconds = estimate.seconds,
            .origin = Origin::kAnalytic,
            .error = model_.error(query.kind),
            .memory_bytes = estimate.memory_bytes};
  }
  std::string description() const override {
    return fmt::format("analytic ({})", model_.engine().architecture->name);
  }

 private:
  AnalyticModel model_;
};

}  // namespace

std::unique_ptr<CostSource> make_cost_source(const Accelerator& accelerator, const std::string&) {
  if (find_architecture(accelerator.architecture) == nullptr)
    return std::make_unique<RooflineSource>(accelerator);
  return std::make_unique<AnalyticSource>(accelerator);
}

}  // namespace moebius
