// Which cores an op has from its beginning to its end.
#include <algorithm>
#include <utility>
#include <vector>

#include "sim/machine.h"

namespace moebius {

int Machine::units_of(const LaneState& lane) {
  if (whole_chips_) return 0;
  const OpUse& op = use_on(lane);
  if (!op.communicates) return op.units;
  return chips_shared_ ? std::max<int>(0, op.units)
                       : live_on(lane).as_class->communication_cores(lane.op, plans_);
}

Chips::Use Machine::use_of(const LaneState& lane, const Live& live) {
  return live.use->ops[lane.op].communicates ? Chips::Use::kCommunication : Chips::Use::kCompute;
}

// From the beginning the lane has none: who is granted them may end at once, and spread what it leaves.
void Machine::release_cores(LaneState& lane, const Live& live, Chips::Use use) {
  const int cores = std::exchange(lane.cores, 0);
  if (cores == 0) return;
  grants_.clear();
  chips_.release(chip_of_class_[live.rank_class], cores, use, grants_);
  if (!grants_.empty()) {
    const std::vector<Chips::Grant> granted = grants_;
    for (const Chips::Grant& grant : granted) hold(grant.holder, grant.cores);
  }
  if (use != Chips::Use::kCompute && !chips_shared_) spread(live.rank_class);
}

// The rest of a kernel goes to all cores that it finds free, also to those that communication leaves while it
// runs.
void Machine::spread(std::int32_t rank_class) {
  LaneState& lane = lane_of(rank_class, Lane::kCompute);
  if (!lane.busy || lane.cores == 0 || lane.cost == nullptr) return;
  const int chip = chip_of_class_[rank_class];
  const int more = chips_.take_more(chip, use_on(lane).units, lane.cores);
  if (more == 0) return;
  lane.cores += more;
  const OpCost& cost = live_on(lane).as_class->cost(lane.op, lane.cores);
  const double share = lane.cost->seconds > 0 ? cost.seconds / lane.cost->seconds : 1;
  if (share != 1)
    chips_.go_on_as(chip, static_cast<std::int32_t>(&lane - lanes_.data()), cost.seconds / lane.clock,
                    cost.memory_bytes, now_);
  lane.cost = &cost;
}

}  // namespace moebius
