// A bar on standard error, for people who wait: only on a terminal, only after a second, gone when it is
// done.
#pragma once

#include <chrono>
#include <string_view>

namespace moebius {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // 0..1; redrawn at most ten times a second. `doing`: beside it; without, how long the rest will take.
  void show(double share, std::string_view doing = {});

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_ = false;
  bool drawn_ = false;
  Clock::time_point started_, next_;
};

}  // namespace moebius
