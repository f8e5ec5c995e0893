// What tests on a device share: the reason to skip, and jobs that run on it and on the host.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "real/cuda/cuda_executor.h"
#include "tests/cross/small_training.h"
#include "workloads/schedule/executor.h"

namespace moebius {

// Why tests of the device are skipped; empty where there is one.
inline std::string no_device() {
  try {
    cuda_memory_bytes();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Leaves a test case, with the reason, where there is no device.
#define NEEDS_DEVICE()                                           \
  if (const std::string reason = no_device(); !reason.empty()) { \
    WARN("skipped: " << reason);                                 \
    return;                                                      \
  }                                                              \
  static_cast<void>(0)

// A training job on the device; from run() on, everything can be looked at.
class DeviceRun {
 public:
  DeviceRun(const TrainingJob& job, const cuda::CudaOptions& options)
      : training_(job),
        recorder_(training_.layout(), {.detail = Detail::kOps}),
        executor_(make_cuda_executor(training_.layout(), recorder_, options)) {}

  CudaExecutor& run() {
    end_ = execute(training_, *executor_, recorder_);
    return *executor_;
  }
  CudaExecutor& executor() { return *executor_; }
  Recorder& recorder() { return recorder_; }
  Time end() const { return end_; }
  int ranks() const { return training_.layout().ranks; }

 private:
  Training training_;
  Recorder recorder_;
  std::unique_ptr<CudaExecutor> executor_;
  Time end_;
};

// Of requests, those whose answers are equal to the last token. Where two logits nearly tie, a sum's order or
// the few bits of a tensor core's sums decide, and everything after it then differs too.
inline double share_of_equal(const std::vector<std::vector<std::int32_t>>& a,
                             const std::vector<std::vector<std::int32_t>>& b) {
  if (a.size() != b.size() || a.empty()) return 0;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  return static_cast<double>(equal) / static_cast<double>(a.size());
}

// The largest difference of two vectors, relative to the root mean square of the second.
inline double difference(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return INFINITY;
  double squares = 0, largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    squares += static_cast<double>(expected[i]) * expected[i];
    const double off = std::abs(static_cast<double>(found[i]) - expected[i]);
    largest = off <= largest ? largest : off;  // NaN counts
    if (std::isnan(off)) return INFINITY;
  }
  if (squares == 0) return largest;
  return largest / std::sqrt(squares / static_cast<double>(expected.size()));
}

}  // namespace moebius
