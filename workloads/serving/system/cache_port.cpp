#include "workloads/serving/system/cache_port.h"

#include <algorithm>

namespace moebius {

Time CachePort::idle_from(Time at) const {
  at = std::max(at, since_);
  for (const Stretch& taken : taken_) {
    if (taken.begin > at) break;
    at = std::max(at, taken.end);
  }
  return at;
}

Time CachePort::taken_from(Time at) const {
  for (const Stretch& taken : taken_)
    if (taken.end > at) return std::max(at, taken.begin);
  return kForever;
}

// Those that meet are one. Caches are looked back for as long as an iteration lasts: a few stretches do.
void CachePort::take(Time begin, Time end) {
  if (begin >= end) return;
  constexpr std::size_t kKept = 32;
  const auto first = std::lower_bound(taken_.begin(), taken_.end(), begin,
                                      [](const Stretch& taken, Time at) { return taken.end < at; });
  auto last = first;
  for (; last != taken_.end() && last->begin <= end; ++last) {
    begin = std::min(begin, last->begin);
    end = std::max(end, last->end);
  }
  if (first == last) {
    taken_.insert(first, {begin, end});
  } else {
    *first = {begin, end};
    taken_.erase(first + 1, last);
  }
  if (taken_.size() <= kKept) return;
  since_ = taken_.front().end;
  taken_.erase(taken_.begin());
}

Time pass_meanwhile(CachePort& one, CachePort& other, Time begin, Time end, Time work) {
  Time left = work;
  for (Time at = begin; left.ns > 0;) {
    const Time idle = other.idle_from(one.idle_from(at));
    if (idle >= end) break;
    if (idle != at) {  // both have to be idle then
      at = idle;
      continue;
    }
    const Time until = std::min({end, one.taken_from(at), other.taken_from(at), at + left});
    one.take(at, until);
    other.take(at, until);
    left = left - (until - at);
    at = until;
  }
  return work - left;
}

}  // namespace moebius
