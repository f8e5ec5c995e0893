#include "workloads/report/report_figures.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "hw/error.h"
#include "workloads/cost/roofline.h"
#include "workloads/report/job_kinds.h"
#include "workloads/training/pipeline/mixed_stages.h"

namespace moebius {

int steps_of(const Report& report) {
  return report.scenario->kind == ScenarioKind::kTraining ? report.scenario->training.num_steps() : 1;
}

namespace {

// Share of the buffer that every rank must send at least, times what algbw counts (nccl-tests,
// doc/PERFORMANCE.md).
double bus_factor(OpKind operation, double ranks) {
  if (operation == OpKind::kAllReduce) return 2 * (ranks - 1) / ranks;
  const bool spread = operation == OpKind::kReduceScatter || operation == OpKind::kAllGather ||
                      operation == OpKind::kAllToAll;
  return spread ? (ranks - 1) / ranks : 1;
}

// What is left of one sum of seconds beside another. They are added up in different orders, so that a
// billionth of them is rounding, not time.
double rest(double whole, double part) {
  const double left = whole - part, rounding = 1e-9 * whole;
  CHECK(left >= -rounding, fmt::format("{} s of {} s", part, whole));
  return left > rounding ? left : 0;
}

// What a token costs forward; experts that it was dropped from are no work.
double forward_flops(const Model& model, std::int64_t length, bool causal, double dropped) {
  const double all = forward_flops_per_token(model, length, causal).value;
  if (dropped <= 0) return all;
  Model one_more = model;
  ++one_more.experts.active;
  const double expert = forward_flops_per_token(one_more, length, causal).value - all;
  return all - dropped * model.experts.active * expert;
}

// Of a trained token. Frozen matrices have no gradient of their own: their products run once forward and once
// back, those of adapters and what lies between queries and keys three times.
double trained_flops(const Scenario& scenario, double forward, double dropped) {
  const Adapters& adapters = scenario.training.adapters;
  if (!adapters.any()) return 3 * forward;
  const Model& model = scenario.model;
  double products = product_flops_per_token(model).value;
  double beside = 2 * count_adapters(model, adapters).of_token;
  if (dropped > 0) {
    const double kept = 1 - dropped;
    Model no_experts = model;
    no_experts.experts.active = 0;
    const double others = product_flops_per_token(no_experts).value;
    const double beside_others = 2 * count_adapters(no_experts, adapters).of_token;
    products = others + kept * (products - others);
    beside = beside_others + kept * (beside - beside_others);
  }
  return 2 * products + 3 * (forward - products) + 3 * beside;
}

// What a member sends to others: of equal parts, and its own beside them, the (n - 1) / n of bus_factor().
double mean_sent(const PairBytes& matrix) {
  double sum = 0;
  for (int rank = 0; rank < matrix.ranks; ++rank) sum += matrix.sent(rank);
  return sum / matrix.ranks;
}

}  // namespace

TrainingFigures training_figures(const Report& report) {
  const Scenario& scenario = *report.scenario;
  const TrainingWorkload& work = scenario.training;
  TrainingFigures figures;
  figures.devices = scenario.plan.ranks();
  figures.step_time_s = report.metrics.makespan.seconds() / work.num_steps();
  const std::optional<PackedTokens> packed = packed_figures(report);
  const double tokens =
      packed ? packed->real
             : static_cast<double>(work.global_batch) * static_cast<double>(work.sequence_length);
  const std::int64_t length = packed ? std::llround(packed->effective_length()) : work.sequence_length;
  figures.tokens_per_s = tokens / figures.step_time_s;
  Model counted = scenario.model;
  counted.mtp_layers = 0;
  const double dropped = report.experts.empty() ? 0 : report.experts.dropped_share();
  const auto rate = [&](bool causal) {
    const double forward = forward_flops(counted, length, causal, dropped);
    const double all = work.forward_only ? forward : trained_flops(scenario, forward, dropped);
    return all * figures.tokens_per_s / figures.devices;
  };
  const double peak = peak_of_devices(*scenario.cluster, figures.devices) / figures.devices;
  figures.tflops_per_device = rate(false) * 1e-12;
  figures.tflops_per_device_causal = rate(true) * 1e-12;
  figures.mfu = rate(false) / peak;
  figures.mfu_causal = rate(true) / peak;
  return figures;
}

double sent_bytes(const Report& report) {
  const bool training = report.scenario->kind == ScenarioKind::kTraining;
  return report.metrics.sent_bytes / (training ? report.scenario->training.num_steps() : 1);
}

CollectiveRates collective_figures(const Report& report) {
  const CollectiveWorkload& work = report.scenario->collective;
  CollectiveRates figures;
  figures.time_s = report.metrics.makespan.seconds();
  figures.algbw = work.bytes.value / figures.time_s;
  figures.busbw = work.matrix ? mean_sent(*work.matrix) / figures.time_s
                              : figures.algbw * bus_factor(work.operation, work.group_ranks());
  return figures;
}

PassSeconds pass_figures(const Report& report) {
  PassSeconds passes = report.metrics.passes;
  for (double* part : {&passes.forward, &passes.backward, &passes.weight, &passes.overlapped,
                       &passes.optimizer, &passes.between})
    *part /= steps_of(report);
  return passes;
}

TimeFigures time_figures(const Report& report) {
  const Breakdown& sums = report.metrics.breakdown;
  const double steps = steps_of(report);
  TimeFigures figures;
  figures.whole = report.metrics.makespan.seconds() / steps;
  figures.optimizer = sums.optimizer / steps;
  for (int i = 0; i < kNumOpKinds; ++i) {
    const TimeFigures::Kind kind{
        static_cast<OpKind>(i),        sums.compute[i] / steps,
        sums.communication[i] / steps, sums.exposed[i] / steps,
        sums.waiting[i] / steps,       report.metrics.flops_by_kind[i] / steps / report.scenario->ranks()};
    figures.compute += kind.compute;
    figures.exposed += kind.exposed;
    figures.hidden += rest(kind.busy, kind.exposed);
    const bool pipeline = kind.kind == OpKind::kSend || kind.kind == OpKind::kRecv;
    if (!pipeline) figures.waiting += kind.waiting;
    if (kind.compute > 0 || kind.busy > 0 || kind.waiting > 0) figures.kinds.push_back(kind);
  }
  figures.bubble = rest(sums.idle / steps, figures.waiting);
  return figures;
}

bool of_timed_iterations(const Report& report) {
  return report.service && report.metrics.spans == 0 && trust_figures(report.metrics).busy > 0;
}

TrustFigures trust_figures(const Metrics& metrics) {
  TrustFigures figures;
  for (const double seconds : metrics.seconds_by_origin) figures.busy += seconds;
  if (figures.busy <= 0) return figures;
  figures.network_share = metrics.seconds_by_origin[static_cast<int>(Origin::kNetwork)] / figures.busy;
  // mean_error is over all busy time, and transfers bring none.
  if (figures.network_share < 1) figures.kernel_error = metrics.mean_error / (1 - figures.network_share);
  return figures;
}

namespace {

// Which class idles least, and what its ranks do, in seconds of the whole run.
struct CriticalClass {
  const ErrorSeconds* errors = nullptr;
  double idle = 0, exposed = 0;
};

CriticalClass critical_class(const Metrics& metrics) {
  CriticalClass critical;
  for (std::size_t i = 0; i < metrics.errors_by_class.size(); ++i) {
    const Breakdown& sums = metrics.by_class[i];
    if (critical.errors != nullptr && sums.idle >= critical.idle) continue;
    critical = {&metrics.errors_by_class[i], sums.idle,
                std::accumulate(sums.exposed.begin(), sums.exposed.end(), 0.0)};
  }
  return critical;
}

// The kind whose table or formula a cost came from: a GEMM's gradient of its input is the same kernel, and
// all passes at memory speed without a table have one formula.
OpKind told_with(Origin origin, OpKind kind) {
  const bool formula = origin == Origin::kAnalytic || origin == Origin::kRoofline;
  if (formula && !uses_tensor_cores(kind)) return OpKind::kAdd;
  if (kind == OpKind::kGemmDgrad) return OpKind::kGemm;
  if (kind == OpKind::kGroupedGemmDgrad) return OpKind::kGroupedGemm;
  return kind;
}

// Expected absolute error of all that computes, in seconds.
double combined_error(const ErrorSeconds& errors, bool with_bounds) {
  double squares = 0;
  for (int origin = 0; origin < kNumOrigins; ++origin) {
    const auto from = static_cast<Origin>(origin);
    if (from == Origin::kRoofline && !with_bounds) continue;
    std::array<double, kNumComputeKinds> together{};
    for (int kind = 0; kind < kNumComputeKinds; ++kind)
      together[static_cast<int>(told_with(from, static_cast<OpKind>(kind)))] += errors[origin][kind];
    for (const double seconds : together) squares += seconds * seconds;
  }
  return std::sqrt(squares);
}

}  // namespace

std::optional<IntervalFigures> interval_figures(const Report& report) {
  const CriticalClass critical = critical_class(report.metrics);
  const double whole = report.metrics.makespan.seconds(), step = whole / steps_of(report);
  const double compute = whole - critical.idle - critical.exposed;
  if (critical.errors == nullptr || compute <= 0) return std::nullopt;
  const double deviation = std::sqrt(std::numbers::pi / 2) / compute;
  const double up = deviation * combined_error(*critical.errors, true);
  if (up <= 0) return std::nullopt;
  const double down = std::min(1.0, deviation * combined_error(*critical.errors, false));
  const double covered = compute / (compute + critical.exposed);
  return IntervalFigures{.low = step * (1 - covered * down),
                         .high = step * (1 + covered * up),
                         .relative = covered * up,
                         .covered = covered};
}

std::string_view interval_subject(const Report& report) {
  return report.scenario->kind == ScenarioKind::kServing ? "run_time_s" : "step_time_s";
}

bool shown(const MemoryReport& memory, MemoryKind kind) {
  return kind != MemoryKind::kCache ||
         memory.classes[memory.worst_class].at_peak[static_cast<int>(kind)].value > 0;
}

std::string_view to_string(JudgedExpectation::Verdict verdict) {
  using Verdict = JudgedExpectation::Verdict;
  switch (verdict) {
    case Verdict::kShown:
      return "shown";
    case Verdict::kOk:
      return "ok";
    case Verdict::kMiss:
      return "miss";
    case Verdict::kKnownMiss:
      return "known miss";
    case Verdict::kWorse:
      return "worse";
    case Verdict::kAbsent:
      return "absent";
  }
  return "";
}

void require_expected_figures(const Report& report) {
  for (const JudgedExpectation& judged : judge_expectations(report))
    if (judged.verdict == JudgedExpectation::Verdict::kAbsent)
      throw run_error(fmt::format("{}: \"expect\" names \"{}\", which this run does not report",
                                  report.scenario->name, judged.row->metric));
}

}  // namespace moebius
