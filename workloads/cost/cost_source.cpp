#include "workloads/cost/cost_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

class RooflineSource : public CostSource {
 public:
  explicit RooflineSource(Accelerator accelerator) : accelerator_(std::move(accelerator)) {}

  Cost cost(const CostQuery& query) const override {
    CHECK(!is_communication(query.kind), fmt::format("no compute cost of {}", to_string(query.kind)));
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

}  // namespace

std::unique_ptr<CostSource> make_cost_source(const Accelerator& accelerator, const std::string&) {
  return std::make_unique<RooflineSource>(accelerator);
}

}  // namespace moebius
