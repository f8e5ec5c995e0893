// A small model that learns on the host, fast enough to show it in some tens of steps.
#pragma once

#include <vector>

#include "tests/cross/small_training.h"

#include "tests/catch.h"

namespace moebius {

// The loss of each step.
template <class Real = float>
std::vector<double> learning_curve(const TrainingJob& job, bool exact = false) {
  HostOptions options;
  options.exact = exact;
  options.adam.learning_rate = 1e-2;
  SmallRun<Real> run(job, options);
  const HostExecutor<Real>& executor = run.run();
  std::vector<double> all;
  for (int step = 0; step < executor.num_steps(); ++step) all.push_back(executor.loss(step));
  return all;
}

// By step: the reverse pass and the optimizer of one step show in the loss of the next.
inline void check_same_curve(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-6));
  CHECK(a.back() != a.front());
}

inline double mean_of_last(const std::vector<double>& values, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += values[values.size() - 1 - i];
  return sum / count;
}

}  // namespace moebius
