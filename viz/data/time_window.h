// The stretch of time that a screen shows, and how wheel and mouse move it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace moebius::viz {

// Nanoseconds; as doubles they are exact to a hundred days. Pixels come in as shares of the width, 0 to 1.
struct TimeWindow {
  double begin = 0, end = 1;

  double length() const { return end - begin; }
  double at(double share) const { return begin + share * length(); }
  double share_of(double time) const { return (time - begin) / length(); }

  // What lies under `share` stays there. Never shorter than `shortest`.
  void zoom(double factor, double share, double shortest = 20) {
    const double fixed = at(share), length_after = std::max(length() * factor, shortest);
    begin = fixed - share * length_after;
    end = begin + length_after;
  }
  void pan(double share) {
    const double by = share * length();
    begin += by;
    end += by;
  }
  // Inside [0, limit], a tenth of the window beyond each end allowed.
  void clamp(double limit) {
    const double longest = std::max(limit, 20.0) * 1.1;
    if (length() > longest) *this = {-0.05 * std::max(limit, 20.0), 1.05 * std::max(limit, 20.0)};
    const double slack = 0.1 * length();
    if (begin < -slack) pan((-slack - begin) / length());
    if (end > std::max(limit, 20.0) + slack) pan((std::max(limit, 20.0) + slack - end) / length());
  }
};

}  // namespace moebius::viz
