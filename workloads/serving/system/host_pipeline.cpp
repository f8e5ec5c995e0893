#include "workloads/serving/system/host_pipeline.h"

#include <algorithm>

namespace moebius {

bool HostCosts::takes_time() const {
  const Time sum = per_iteration + per_sequence + per_request + per_prompt_token + per_image + per_sample;
  return (sum + per_token).ns > 0;
}

void HostTotals::add(const HostTotals& other) {
  loop += other.loop;
  output += other.output;
  waits += other.waits;
}

// The earliest moment at which the device can begin.
Time HostLane::start(Time now, Time before, bool anew) {
  totals_.loop += before;
  if (!costs_.overlapped) return now + before;
  if (now != ended_ || anew) {  // after a pause, if only a moment's
    loop_free_ = std::max({loop_free_, ended_ + after_, now}) + before;
    return loop_free_;
  }
  const Time done = std::max(loop_free_, begun_) + before;
  // The tokens of the iteration that has just ended go before what is left to prepare.
  loop_free_ = std::max(done, now) + after_;
  return done > now ? loop_free_ : now;
}

Time HostLane::show(Time ready, Time after) {
  if (costs_.parallel) {
    totals_.output += after;
    return output_free_ = std::max(ready, output_free_) + after;
  }
  totals_.loop += after;
  after_ = after;
  return ready + after;
}

HostLane::Turn HostLane::turn(Time now, Time device, const HostWork& work) {
  const std::int64_t prepared = costs_.by_change ? work.changes : work.sequences;
  begun_ = start(now, pending_ + costs_.per_iteration + costs_.per_sequence * prepared, work.anew);
  pending_ = {};
  totals_.waits += begun_ - now;
  const Time sampling = costs_.per_sample * work.samples;
  totals_.loop += sampling;
  totals_.waits += sampling;
  ended_ = begun_ + device + sampling;
  const std::int64_t workers = costs_.parallel ? costs_.output_workers : 1;
  const Time shown = show(ended_, costs_.per_token * ((work.tokens + workers - 1) / workers));
  if (costs_.overlapped || costs_.parallel) return {ended_, shown};
  totals_.waits += shown - ended_;
  return {ended_ = shown, shown};
}

Time HostWorkers::serve(Time now, Time work) {
  const auto earliest = std::min_element(free_.begin(), free_.end());
  busy_ += work;
  return *earliest = std::max(now, *earliest) + work;
}

}  // namespace moebius
