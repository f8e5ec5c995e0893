#include "workloads/serving/system/host_pipeline.h"

#include <algorithm>
#include <iterator>

#include "hw/clock_end.h"

namespace moebius {

bool HostCosts::takes_time() const {
  const Time each[] = {per_iteration,    per_sequence, per_submission, per_request,
                       per_prompt_token, per_image,    per_sample,     per_token};
  return std::any_of(std::begin(each), std::end(each), [](Time time) { return time.ns > 0; });
}

void HostTotals::add(const HostTotals& other) {
  loop += other.loop;
  output += other.output;
  waits += other.waits;
}

// The earliest moment at which the device can begin.
Time HostLane::start(Time now, Time before, bool anew) {
  totals_.loop = later(totals_.loop, before);
  Time& free = loop_free();
  if (!costs_.overlapped) return free = later(std::max(free, now), before);
  if (now != ended_ || anew) {  // after a pause, if only a moment's
    free = later(std::max({free, later(ended_, after_), now}), before);
    return free;
  }
  const Time done = later(std::max(free, begun_), before);
  // The tokens of the iteration that has just ended go before what is left to prepare.
  free = later(std::max(done, now), after_);
  return done > now ? free : now;
}

Time HostLane::show(Time ready, Time after) {
  if (costs_.parallel) {
    totals_.output = later(totals_.output, after);
    return output_free_ = later(std::max(ready, output_free_), after);
  }
  totals_.loop = later(totals_.loop, after);
  after_ = after;
  return later(ready, after);
}

HostLane::Turn HostLane::turn(Time now, Time device, const HostWork& work) {
  begin(now, work);
  return end(device, work);
}

Time HostLane::begin(Time now, const HostWork& work) {
  const std::int64_t prepared = costs_.by_change ? work.changes : work.sequences;
  const Time before = later(later(pending_, costs_.per_iteration), repeated(costs_.per_sequence, prepared));
  begun_ = start(now, before, work.anew);
  pending_ = {};
  loop_free() = later(loop_free(), costs_.per_submission);  // start() has left it at `begun_` or later
  totals_.loop = later(totals_.loop, costs_.per_submission);
  totals_.waits += begun_ - now;
  return begun_;
}

HostLane::Turn HostLane::end(Time device, const HostWork& work) {
  const Time sampling = repeated(costs_.per_sample, work.samples);
  const Time chosen = std::max(device, costs_.per_submission);  // all its kernels are submitted, and done
  totals_.loop = later(totals_.loop, sampling);
  totals_.waits += chosen - device + sampling;
  ended_ = later(later(begun_, chosen), sampling);
  const std::int64_t workers = costs_.parallel ? costs_.output_workers : 1;
  const Time shown = show(ended_, repeated(costs_.per_token, ceil_div(work.tokens, workers)));
  if (costs_.overlapped || costs_.parallel) return {ended_, shown};
  totals_.waits += shown - ended_;
  return {ended_ = shown, shown};
}

Time HostWorkers::serve(Time now, Time work) {
  const auto earliest = std::min_element(free_.begin(), free_.end());
  busy_ = later(busy_, work);
  return *earliest = later(std::max(now, *earliest), work);
}

}  // namespace moebius
