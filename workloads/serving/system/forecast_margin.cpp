#include "workloads/serving/system/forecast_margin.h"

#include <algorithm>
#include <cmath>

namespace moebius {

void ForecastMargin::add(Time now, Time came, Time forecast) {
  if (short_by_.size() < kMost) {
    short_by_.emplace_back(now, came - forecast);
  } else {
    short_by_[turn_] = {now, came - forecast};
    turn_ = (turn_ + 1) % kMost;
  }
  known_ = false;
}

Time ForecastMargin::at(Time now) {
  constexpr Time kOften{1'000'000'000};  // old ones are looked for
  if (short_by_.empty() || (known_ && now - known_at_ < kOften)) return margin_;
  sorted_.clear();
  for (const auto& [when, by] : short_by_)
    if (now - when <= kWindow) sorted_.push_back(by);
  known_ = true;
  known_at_ = now;
  margin_ = {};
  if (sorted_.empty()) return margin_;
  const double place = std::ceil(kSure * static_cast<double>(sorted_.size() + 1)) - 1;
  const auto at = std::min(sorted_.size() - 1, static_cast<std::size_t>(place));
  std::nth_element(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(at), sorted_.end());
  return margin_ = std::max(Time{}, sorted_[at]);
}

}  // namespace moebius
