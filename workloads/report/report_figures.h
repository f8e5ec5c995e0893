// The figures that both forms of a report show, computed once from the metrics.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/report/report.h"

namespace moebius {

// Of one step of a training run. FLOPs are those of the model (3 forward passes' worth, no recomputation;
// with adapters 2 for what is multiplied by frozen weights, 3 for the adapters and between queries and keys),
// against the dense BF16 peak of the device: non-causal attention as most publications count it, and causal.
// MTP modules are simulated, but not counted: DeepSeek's 432 and 385 TFLOP/s (ISCA 2025, Table 4) are those
// of the main model.
struct TrainingFigures {
  int devices = 0;
  double step_time_s = 0;
  double tokens_per_s = 0;
  double mfu = 0, mfu_causal = 0;
  double tflops_per_device = 0, tflops_per_device_causal = 0;
};
TrainingFigures training_figures(const Report& report);

// Of training that the run had; 1 of everything else.
int steps_of(const Report& report);

// Payload that leaves a rank, over all ranks: of one step (training) or of the operation (collective).
double sent_bytes(const Report& report);

// As nccl-tests counts: algorithm bandwidth is bytes over time; bus bandwidth scales it by what each rank
// must send at least, so that it compares with the wire's rate whatever the number of ranks.
struct CollectiveRates {
  double time_s = 0;
  double algbw = 0, busbw = 0;  // bytes per second
};
CollectiveRates collective_figures(const Report& report);

// Seconds of a step (training) or of the operation (collective), mean over ranks:
// compute + exposed communication + waiting + bubble = the whole.
struct TimeFigures {
  double whole = 0;
  double compute = 0;
  double exposed = 0;    // communication that no compute op of the rank hides
  double waiting = 0;    // idle in a collective, for members that are not there yet
  double bubble = 0;     // idle otherwise: for a neighbour in the pipeline, or with nothing to do
  double hidden = 0;     // communication behind compute
  double optimizer = 0;  // of compute and exposed communication
  struct Kind {
    OpKind kind;
    double compute = 0, busy = 0, exposed = 0, waiting = 0;
    double flops = 0;  // of matrix products and attention, as many as the op asks for
  };
  std::vector<Kind> kinds;  // that took any time, in the order of OpKind
};
TimeFigures time_figures(const Report& report);
PassSeconds pass_figures(const Report& report);  // of training, a step

// How far to trust the times. Kernels: the expected relative error of an op alone, mean over their time; the
// network's is not known before it has been validated, and is left out.
struct TrustFigures {
  double busy = 0;           // seconds, over all ranks
  double network_share = 0;  // of busy
  double kernel_error = 0;
};
TrustFigures trust_figures(const Metrics& metrics);
// Whether that is of iterations between those that were timed, and how these were weighted then.
bool of_timed_iterations(const Report& report);
inline constexpr const char* kWeightedBy =
    "busy time of all iterations, each as those timed op by op that it stands between";

// What the expected errors of its kernels do to a step, told on the rank class that idles least: the step is
// its time. Errors of one origin and kernel are those of one table or formula and add up; those of different
// ones are independent and add in quadrature. Idle time is the work of other ranks, and is taken to err as
// the rank's own does. Expected errors are means of absolute ones; of a normal distribution the deviation is
// sqrt(pi / 2) as large, and one in three falls outside of it. Nothing is below a roofline: what only that
// knows does not lower the step.
struct IntervalFigures {
  double low = 0, high = 0;  // seconds of the step
  double relative = 0;       // high over the step, less one
  double covered = 0;        // share of the step that the interval is about; the rest is the network's
};
// Nothing when no compute has an expected error: a collective alone, or a run that was executed.
std::optional<IntervalFigures> interval_figures(const Report& report);

std::string_view interval_subject(const Report& report);  // the report's key that it is about

// Whether a kind of memory is told: a cache where there is one, everything else always.
bool shown(const MemoryReport& memory, MemoryKind kind);

struct JudgedExpectation {
  enum class Verdict { kShown, kOk, kMiss, kKnownMiss, kWorse, kAbsent };  // kWorse: than the known miss
  const Expectation* row = nullptr;
  std::optional<double> ours;
  double difference = 0;  // relative, ours over expected
  Verdict verdict = Verdict::kShown;
  std::string nearest = {};  // kAbsent: a figure of the report that may be meant; empty: none is near
};
std::string_view to_string(JudgedExpectation::Verdict verdict);
std::vector<JudgedExpectation> judge_expectations(const Report& report);
// run_error that names the first expected figure that the report does not have.
void require_expected_figures(const Report& report);

}  // namespace moebius
