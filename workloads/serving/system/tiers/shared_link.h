// A way that bytes take, one after the other: a direction of a host link, a node's memory, its drives, a NIC.
// What requests wait for goes first; prefetch has a share of the rate while it goes on, begins behind what
// was asked for before it, and never takes more than that share from what is asked for meanwhile. So work w
// that is asked for at t ends by start + w / (1 - share), whatever is prefetched.
#pragma once

#include <algorithm>

#include "hw/units.h"

namespace moebius {

class SharedLink {
 public:
  explicit SharedLink(double prefetch_share = 0) : share_(prefetch_share) {}

  // When work (seconds of the link alone) that is asked for now would end.
  Time quote(Time now, double work) const {
    const double start = std::max(seconds(now), demand_free_);
    const double beside = std::max(0.0, prefetch_free_ - start) * (1 - share_);
    const double end =
        work <= beside ? start + work / (1 - share_) : start + work + beside * share_ / (1 - share_);
    return time_from_seconds(end);
  }
  Time demand(Time now, double work) {
    const Time end = quote(now, work);
    demand_free_ = end.seconds();
    busy_ += work;
    return end;
  }
  struct Span {
    Time start, end;
  };
  Span prefetch(Time now, double work) {
    const double start = std::max({seconds(now), demand_free_, prefetch_free_});
    prefetch_free_ = start + work / share_;
    busy_ += work;
    return {time_from_seconds(start), time_from_seconds(prefetch_free_)};
  }

  // Somebody else holds it until then.
  void hold_until(Time end) { demand_free_ = std::max(demand_free_, seconds(end)); }
  Time free() const { return time_from_seconds(demand_free_); }
  double busy() const { return busy_; }  // seconds of work

 private:
  static double seconds(Time time) { return time.seconds(); }

  double share_;
  double demand_free_ = 0, prefetch_free_ = 0;  // when what was asked for, and prefetched, has gone
  double busy_ = 0;
};

}  // namespace moebius
