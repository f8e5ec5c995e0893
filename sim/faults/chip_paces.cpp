#include "sim/faults/chip_paces.h"

#include <algorithm>
#include <tuple>

namespace moebius {

ChipPaces::ChipPaces(const Fabric& fabric, const FaultPlan& plan, const std::vector<Occurrence>& occurrences,
                     FaultLog& log)
    : fabric_(fabric), occurrences_(occurrences), log_(log) {
  for (std::size_t i = 0; i < occurrences.size(); ++i) {
    const auto& [fault, down, up] = occurrences[i];
    const auto number = static_cast<std::int32_t>(i);
    if (fault.kind != FaultKind::kSlowNode) continue;
    changes_.push_back({down, Kind::kDown, number});
    const Time detected = down + plan.failover.detect;
    if (detected < up) changes_.push_back({detected, Kind::kDetect, number});
    if (up != kForever) changes_.push_back({up, Kind::kUp, number});
  }
  std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
    return std::tie(a.time, a.kind, a.number) < std::tie(b.time, b.kind, b.number);
  });
}

void ChipPaces::advance(Time now, Chips& chips) {
  for (; next_event() <= now; ++next_) {
    const Change& change = changes_[next_];
    const Fault& fault = occurrences_[change.number].fault;
    double pace = 1;
    switch (change.kind) {
      case Kind::kDetect:
        log_.detected(change.number, now);
        continue;
      case Kind::kDown:
        log_.down(change.number, now);
        pace = fault.speed;
        break;
      case Kind::kUp:
        log_.up(change.number, now);
        break;
    }
    for (const auto& [chip, node] : chips_)
      if (node == fault.node) chips.set_pace(chip, pace, now);
  }
}

}  // namespace moebius
