// By how much forecasts fall short, as far as it is known by now.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "hw/units.h"

namespace moebius {

// What came less what was forecast, of the last requests: of so many exchangeable ones the next stays below
// the k-th smallest of n with a probability of k / (n + 1), whatever their law (Vovk et al. 2005, conformal
// prediction).
class ForecastMargin {
 public:
  void add(Time now, Time came, Time forecast);
  // Which the share kSure of requests stays below, of those of the last minute; 0 where nothing is known.
  Time at(Time now);

 private:
  static constexpr std::size_t kMost = 256;
  static constexpr Time kWindow{60'000'000'000};
  static constexpr double kSure = 0.99;

  std::vector<std::pair<Time, Time>> short_by_;  // when, and by what; the next one replaces that at `turn_`
  std::vector<Time> sorted_;
  std::size_t turn_ = 0;
  Time known_at_, margin_;
  bool known_ = true;
};

}  // namespace moebius
