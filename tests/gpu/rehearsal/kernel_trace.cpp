#include "tests/gpu/rehearsal/kernel_trace.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace moebius::cuda {
namespace {

// What has been recorded; work that is still on a stream may outlive the trace.
struct Records {
  HostClock::time_point start;
  std::mutex mutex;
  std::vector<DeviceActivity> all;

  Time now() const {
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(HostClock::now() - start).count()};
  }
};

std::mutex open_mutex;
std::shared_ptr<Records> open_records;
thread_local std::int64_t current_owner = -1;

class RehearsedTrace : public KernelTrace {
 public:
  explicit RehearsedTrace(HostClock::time_point start) : records_(std::make_shared<Records>()) {
    records_->start = start;
    std::lock_guard lock(open_mutex);
    open_records = records_;
  }
  ~RehearsedTrace() override {
    std::lock_guard lock(open_mutex);
    open_records = nullptr;
  }
  void enter(std::int64_t owner) override { current_owner = owner; }
  void leave() override { current_owner = -1; }
  std::vector<DeviceActivity> take() override {
    std::lock_guard lock(records_->mutex);
    std::vector<DeviceActivity> all = std::exchange(records_->all, {});
    std::sort(all.begin(), all.end(),
              [](const DeviceActivity& a, const DeviceActivity& b) { return a.start < b.start; });
    return all;
  }

 private:
  std::shared_ptr<Records> records_;
};

}  // namespace

std::function<void()> traced(Stream stream, std::function<void()> work) {
  std::shared_ptr<Records> records;
  {
    std::lock_guard lock(open_mutex);
    records = open_records;
  }
  if (records == nullptr) return work;
  const auto number = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(stream));
  return [records, work = std::move(work), owner = current_owner, number] {
    const Time start = records->now();
    work();
    std::lock_guard lock(records->mutex);
    records->all.push_back({owner, "body", start, records->now(), number});
  };
}

std::unique_ptr<KernelTrace> open_kernel_trace(HostClock::time_point start) {
  return std::make_unique<RehearsedTrace>(start);
}

}  // namespace moebius::cuda
