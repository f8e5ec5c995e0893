// Sums of simulated times that mind where clocks end: what would lie beyond 292 years is refused (run_error),
// in the sentence that the simulator has for it.
#pragma once

#include <cstdint>

#include "hw/units.h"

namespace moebius {

[[noreturn]] void clocks_end(Time now, double seconds);

// `by` after `now`.
inline Time later(Time now, Time by) {
  Time sum;
  if (__builtin_add_overflow(now.ns, by.ns, &sum.ns)) clocks_end(now, by.seconds());
  return sum;
}

// So many of `each`, one after the other.
inline Time repeated(Time each, std::int64_t number) {
  Time all;
  if (__builtin_mul_overflow(each.ns, number, &all.ns))
    clocks_end({}, each.seconds() * static_cast<double>(number));
  return all;
}

// `seconds`, at least 0, after `now`; rounded as time_from_seconds does.
Time after_seconds(Time now, double seconds);

}  // namespace moebius
