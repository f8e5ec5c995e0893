// The clocks of boards at their power limit, and what ops draw.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/machine.h"

namespace moebius {

double Machine::seconds_at_clock(LaneState& lane) {
  lane.clock = 1;
  if (!lane.cost->energy.follows_clock) return lane.cost->seconds;
  lane.clock = governors_[chip_of_class_[live_on(lane).rank_class]].clock();
  return lane.clock == 1 ? lane.cost->seconds : lane.cost->seconds / lane.clock;
}

double Machine::mean_clock() const {
  double sum = 0;
  for (const PowerGovernor& governor : governors_) sum += governor.mean_clock();
  return governors_.empty() ? 1 : sum / static_cast<double>(governors_.size());
}

void Machine::forget_clocks() {
  for (PowerGovernor& governor : governors_) governor.forget(now_);
}

bool Machine::repeat_clocks() {
  bool differ = false;
  for (PowerGovernor& governor : governors_) differ |= governor.repeat(now_);
  return differ;
}

double Machine::change_of_clocks() const {
  double change = 0;
  for (const PowerGovernor& governor : governors_) change = std::max(change, governor.change());
  return change;
}

std::vector<BoardPast> Machine::pasts_of_clocks() const {
  std::vector<BoardPast> pasts;
  for (const PowerGovernor& governor : governors_) pasts.push_back(governor.past(now_));
  return pasts;
}

void Machine::begin_clocks(const std::vector<BoardPast>& pasts) {
  CHECK(pasts.empty() || pasts.size() == governors_.size(),
        fmt::format("{} boards, found what {} have in mind", governors_.size(), pasts.size()));
  for (std::size_t i = 0; i < governors_.size(); ++i)
    governors_[i].begin(pasts.empty() ? BoardPast{} : pasts[i], now_);
}

// Until now.
void Machine::draw(std::int32_t rank_class, const OpEnergy& energy, double clock, Time start) {
  PowerGovernor& governor = governors_[chip_of_class_[rank_class]];
  governor.ended(energy, clock, start, now_);
  recorder_.drew(rank_class, joules_at(energy, clock, governor.power()));
}

// The memory behind what came and went; the wires themselves are not counted.
void Machine::draw_for_transfer(const LaneState& lane, const Live& live) {
  const Op& op = live.use->fragment->ops[lane.op];
  const bool alone = is_host_copy(op.kind) || op.kind == OpKind::kRecv;
  const double counted = alone ? 0 : live.as_class->plan(lane.op, plans_)->memory_bytes;
  const std::size_t ranks = alone ? 1 : layout_.classes[live.rank_class].group(op.group).ranks.size();
  const double bytes =
      counted > 0 ? counted : bytes_of_transfer(op.kind, op.payload.value, static_cast<int>(ranks));
  const double each = governors_[chip_of_class_[live.rank_class]].power().joule_per_byte;
  draw(live.rank_class, {.steady = each * bytes}, 1, lane.work_start);
}

}  // namespace moebius
