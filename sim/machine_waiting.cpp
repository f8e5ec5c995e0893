// What a machine that goes no further waits for, for the sentence of a deadlock.
#include <fmt/format.h>

#include "sim/machine.h"

namespace moebius {

std::string Machine::describe_waiting() const {
  std::string text;
  int waiting = 0;
  for (std::size_t index = 0; index < lanes_.size(); ++index) {
    const LaneState& lane = lanes_[index];
    if (lane.queue.empty()) continue;
    if (++waiting > 4) continue;
    const Live& live = live_[lane.queue.front()];
    const std::int32_t op = live.use->lane_ops[index % kNumLanes][lane.cursor];
    const char* reason = live.waits_for > 0          ? "for earlier submissions"
                         : live.dependencies[op] > 0 ? "for its dependencies"
                         : lane.busy                 ? "for its peers or for cores"
                                                     : "for its lane";
    text += fmt::format("{}op {} ({}) of \"{}\", submission {}, class {}, waits {}", text.empty() ? "" : "; ",
                        op, to_string(live.use->fragment->ops[op].kind), live.use->fragment->name,
                        live.sequence, live.rank_class, reason);
  }
  if (waiting > 4) text += fmt::format("; and {} more", waiting - 4);
  return text;
}

}  // namespace moebius
