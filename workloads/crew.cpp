#include "workloads/crew.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "workloads/progress_bar.h"

namespace moebius {
namespace {

class Crew {
 public:
  Crew(std::size_t count, const std::function<void(std::size_t)>& work, bool quiet)
      : count_(count), work_(work) {
    if (!quiet) bar_.emplace();
  }

  void run() {
    const std::size_t wanted = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < std::min(wanted, count_); ++i) threads.emplace_back([this] { take(); });
    take();
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // Takes pieces until there are none left.
  void take() {
    for (std::size_t i = next_++; i < count_; i = next_++) {
      try {
        work_(i);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        next_ = count_;
      }
      const std::lock_guard lock(mutex_);
      ++done_;
      if (bar_) bar_->show(static_cast<double>(done_) / static_cast<double>(count_));
    }
  }

  const std::size_t count_;
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;  // of what follows
  std::size_t done_ = 0;
  std::optional<ProgressBar> bar_;
  std::exception_ptr failure_;
};

}  // namespace

void work_side_by_side(std::size_t count, const std::function<void(std::size_t)>& work, bool quiet) {
  Crew(count, work, quiet).run();
}

}  // namespace moebius
