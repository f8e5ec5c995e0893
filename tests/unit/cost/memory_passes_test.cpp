// Passes at memory speed in layers 3 and 4 of DeepSeek's published training trace, against the tables of
// layers 1 and 2 and, where those have none, the bytes model.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "hw/catalog.h"
#include "workloads/calibration/trace/training_trace.h"
#include "workloads/cost/cost_source.h"
#include "workloads/cost/roofline.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

const char* const kFile = MOEBIUS_SOURCE_DIR "/../shared/data/profile_data_train_kernels.csv";

bool is_pass(const TraceOp& op) {
  return op.queries.size() == 1 && !uses_tensor_cores(op.queries.front().kind);
}

double microseconds_of_row(const TraceOp& op) {
  return op.microseconds / static_cast<double>(op.queries.front().shape.m);
}

bool is_same_pass(const TraceOp& a, const TraceOp& b) {
  if (!is_pass(b) || a.is_stand_in != b.is_stand_in) return false;
  const CostQuery &x = a.queries.front(), &y = b.queries.front();
  const double rows = static_cast<double>(x.shape.m) / static_cast<double>(y.shape.m);
  return x.kind == y.kind && x.dtype == y.dtype && x.shape.n == y.shape.n && rows < 2 && rows > 0.5;
}

// The same pass in all layers: how far apart repetitions of one kernel are in a real step.
double spread(const std::vector<TraceOp>& ops, const TraceOp& op) {
  double least = microseconds_of_row(op), most = least;
  for (const TraceOp& other : ops) {
    if (!is_same_pass(op, other)) continue;
    least = std::min(least, microseconds_of_row(other));
    most = std::max(most, microseconds_of_row(other));
  }
  return most / least;
}

TEST_CASE("passes at memory speed come out as layers 1 and 2 of the trace had them") {
  if (!std::filesystem::exists(kFile)) {
    WARN("skipped: the trace is not beside the project (../shared/data/profile_data_train_kernels.csv)");
    return;
  }
  const auto source = make_cost_source(Catalog().accelerator("h800-sxm"));
  const std::vector<TraceOp> ops = read_trace_ops(Csv(kFile));
  std::vector<double> errors;
  double ours = 0, measured = 0;
  for (const TraceOp& op : ops) {
    if (!is_pass(op) || op.layer < 3) continue;
    const Cost cost = source->cost(op.queries.front());
    const double us = cost.seconds * 1e6, error = us / op.microseconds - 1;
    std::printf("%d %-8.*s %-36.36s %9.1f %9.1f %+7.1f%%  %-12s spread %.2f\n", op.layer,
                static_cast<int>(op.phase.size()), op.phase.data(), op.what.c_str(), op.microseconds, us,
                100 * error, std::string(to_string(cost.origin)).c_str(), spread(ops, op));
    if (op.is_stand_in) continue;
    ours += us;
    measured += op.microseconds;
    errors.push_back(std::abs(error));
    INFO(op.layer << " " << op.what);
    // One repetition of a pass may be as far from the mean as the slowest from the fastest of them.
    CHECK(std::abs(std::log(us / op.microseconds)) < std::log(1.15 * spread(ops, op)));
  }
  REQUIRE(errors.size() > 100);
  std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2),
                   errors.end());
  std::printf("passes of both layers: %.1f us, ours %.1f us (%+.1f%%), median error %.1f%%\n", measured, ours,
              100 * (ours / measured - 1), 100 * errors[errors.size() / 2]);
  // Layers 3 and 4 run 4% slower than 1 and 2 did.
  CHECK(ours == Approx(measured).epsilon(0.05));
}

}  // namespace
}  // namespace moebius
