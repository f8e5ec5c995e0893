#include "workloads/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace moebius {

ProgressBar::ProgressBar()
    : terminal_(isatty(STDERR_FILENO) == 1),
      started_(Clock::now()),
      next_(started_ + std::chrono::seconds(1)) {}

ProgressBar::~ProgressBar() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressBar::show(double share, std::string_view doing) {
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  drawn_ = true;
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  const int filled = static_cast<int>(40 * std::clamp(share, 0.0, 1.0));
  const double left = share > 0 ? elapsed * (1 - share) / share : 0;
  const std::string beside = doing.empty() ? fmt::format("{:.0f} s left", left) : std::string(doing);
  fmt::print(stderr, "\r\x1b[K[{:█<{}}{: <{}}] {:3.0f}%, {}", "", filled, "", 40 - filled, 100 * share,
             beside);
  std::fflush(stderr);
}

}  // namespace moebius
