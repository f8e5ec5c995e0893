// The report for people: the answer first, then where the time goes, memory, network, published figures, and
// how far to trust each number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "workloads/report/job_kinds.h"
#include "workloads/report/number_text.h"
#include "workloads/report/replay_report.h"
#include "workloads/report/report.h"
#include "workloads/report/report_cluster.h"
#include "workloads/report/report_figures.h"
#include "workloads/report/report_network.h"
#include "workloads/report/report_queues.h"
#include "workloads/report/report_serving.h"
#include "workloads/report/report_uncertainty.h"
#include "workloads/report/step_price.h"
#include "workloads/report/wrapped_text.h"
#include "workloads/training/pipeline/mixed_stages.h"

namespace moebius {

namespace {

using Out = std::back_insert_iterator<std::string>;

// "h800-sxm", or of unlike pools all.
std::string chips_text(const Cluster& cluster) {
  std::vector<std::string> ids;
  for (const Pool& pool : cluster.pools) {
    if (std::find(ids.begin(), ids.end(), pool.accelerator.id) == ids.end())
      ids.push_back(pool.accelerator.id);
  }
  return fmt::format("{}", fmt::join(ids, " + "));
}

// "2", "2 (dense MLPs 4, pieces 8)".
std::string tensor_text(const TrainingPlan& plan) {
  std::vector<std::string> more;
  if (plan.mixed_tp()) more.push_back(fmt::format("dense MLPs {}", plan.dense_degree()));
  if (plan.expert_tp > 1) more.push_back(fmt::format("experts {}", plan.expert_tp));
  if (plan.tp_chunks > 0) more.push_back(fmt::format("pieces {}", plan.tp_chunks));
  return more.empty() ? std::to_string(plan.tp) : fmt::format("{} ({})", plan.tp, fmt::join(more, ", "));
}

std::string context_text(const TrainingPlan& plan) {
  if (plan.cp == 1 || plan.context == ContextKind::kAllGather) return std::to_string(plan.cp);
  return fmt::format("{} ({})", plan.cp, plan.zigzag() ? "ring" : "ulysses");
}

std::string plan_line(const Scenario& scenario) {
  const TrainingPlan& plan = scenario.plan;
  std::string_view schedule;
  for (const auto& row : pipeline_schedules()) {
    if (row.value == plan.schedule) schedule = row.name;
  }
  return fmt::format("{} on {} {}, tp {} · pp {} ({}) · ep {} · cp {} · dp {}, {}, {} microbatches",
                     scenario.model.id, grouped(plan.ranks()), chips_text(*scenario.cluster),
                     tensor_text(plan), plan.pp, schedule, plan.ep, context_text(plan), plan.dp,
                     to_string(plan.gemm), scenario.training.num_microbatches(plan));
}

// All of a short run, the ends of a long one: report.json has every step.
std::string losses_text(const std::vector<double>& losses) {
  constexpr std::size_t kAll = 12, kEnd = 4;
  if (losses.size() <= kAll) return fmt::format("{:.6f}", fmt::join(losses, ", "));
  return fmt::format("{:.6f} ... {:.6f} ({} steps)", fmt::join(losses.begin(), losses.begin() + kEnd, ", "),
                     fmt::join(losses.end() - kEnd, losses.end(), ", "), losses.size());
}

void training_headline(Out out, const Report& report) {
  const TrainingFigures figures = training_figures(report);
  fmt::format_to(out, "{}\n\n", plan_line(*report.scenario));
  fmt::format_to(out, "  step time          {}\n", seconds_text(figures.step_time_s));
  fmt::format_to(out, "  tokens/s           {} ({} a device)\n", grouped(std::llround(figures.tokens_per_s)),
                 grouped(std::llround(figures.tokens_per_s / figures.devices)));
  fmt::format_to(out, "{}{}", adapters_text(report), packing_text(report, figures.step_time_s));
  if (!report.facts.losses.empty())
    fmt::format_to(out, "  loss by step       {}\n", losses_text(report.facts.losses));
  if (!report.facts.on_cluster) {
    fmt::format_to(out, "  executed by        {}: its times say nothing about the scenario's devices\n",
                   report.facts.executor);
    return;
  }
  const double peak = peak_of_devices(*report.scenario->cluster, figures.devices) / figures.devices;
  fmt::format_to(out,
                 "  MFU                {:.1f}% ({:.1f}% with causal attention), of {:.0f} TFLOP/s BF16\n",
                 100 * figures.mfu, 100 * figures.mfu_causal, peak * 1e-12);
  fmt::format_to(out, "  TFLOP/s a device   {:.0f} ({:.0f} causal)\n", figures.tflops_per_device,
                 figures.tflops_per_device_causal);
  fmt::format_to(out, "{}", cost_text(step_price(report)));
}

void tenants_headline(Out out, const Report& report) {
  const std::vector<Tenant>& tenants = report.scenario->collective.tenants;
  fmt::format_to(out, "{} collectives on one fabric, each alone and then all together\n\n", tenants.size());
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    const TenantFigures& figures = report.tenants[i];
    fmt::format_to(out, "  {:<18} {} of {} over {} ranks, queue {}, {} times\n", tenants[i].name,
                   to_string(tenants[i].operation), to_text(tenants[i].bytes), grouped(tenants[i].ranks),
                   tenants[i].queue, tenants[i].repeat);
    fmt::format_to(out, "  {:<18} alone {}, together {}: slowdown {:.3f}\n", "",
                   seconds_text(figures.alone_s), seconds_text(figures.together_s), figures.slowdown());
  }
}

void flows_headline(Out out, const Report& report) {
  const FlowTimes& flows = *report.flows;
  const CollectiveWorkload& work = report.scenario->collective;
  fmt::format_to(out, "{} flows over {} devices, {}{}\n\n", grouped(flows.count), grouped(work.ranks),
                 to_string(work.flows->pattern),
                 work.bytes.value > 0 ? fmt::format(", {} each", to_text(work.bytes)) : "");
  fmt::format_to(out, "  completion time    mean {}, p50 {}, p99 {}, last {}, first {}\n",
                 seconds_text(flows.mean_s), seconds_text(flows.p50_s), seconds_text(flows.p99_s),
                 seconds_text(flows.max_s), seconds_text(flows.min_s));
  if (report.facts.resent_share)
    fmt::format_to(out, "  sent again         {:.2f}% of the packets\n", 100 * *report.facts.resent_share);
}

void collective_headline(Out out, const Report& report) {
  if (report.flows) return flows_headline(out, report);
  if (!report.tenants.empty()) return tenants_headline(out, report);
  const CollectiveRates figures = collective_figures(report);
  const CollectiveWorkload& work = report.scenario->collective;
  const std::string groups = work.groups > 1 ? fmt::format(" in {} groups", work.groups) : "";
  fmt::format_to(out, "{} of {} over {} ranks{}, {}\n\n", to_string(work.operation), to_text(work.bytes),
                 grouped(work.ranks), groups, to_string(work.algorithm));
  fmt::format_to(out, "  time               {}\n", seconds_text(figures.time_s));
  fmt::format_to(out, "  algorithm rate     {} (bytes over time)\n", to_text(ByteRate{figures.algbw}));
  fmt::format_to(out, "  bus rate           {} (as nccl-tests counts)\n", to_text(ByteRate{figures.busbw}));
  for (const CollectiveChoice& row : report.facts.collectives) {
    if (row.automatic || row.with_library || !row.by_structure)
      fmt::format_to(out, "  algorithm          {}\n", algorithm_text(row));
    if (!row.wires.empty()) fmt::format_to(out, "\n{}", wires_text(row.wires));
  }
}

struct TimeRow {
  std::string name;
  double seconds;
};

// The largest rows, and the rest below half a per cent of the whole in one.
void time_rows(Out out, std::vector<TimeRow> rows, double whole) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TimeRow& a, const TimeRow& b) { return a.seconds > b.seconds; });
  double rest = 0;
  for (const TimeRow& row : rows) {
    if (row.seconds < 0.005 * whole) {
      rest += row.seconds;
    } else {
      fmt::format_to(out, "    {:<26} {:>10} {:>6.1f}%  {}\n", row.name, seconds_text(row.seconds),
                     100 * row.seconds / whole, bar(row.seconds / whole));
    }
  }
  if (rest > 0) {
    fmt::format_to(out, "    {:<26} {:>10} {:>6.1f}%\n", "other", seconds_text(rest), 100 * rest / whole);
  }
}

void time_total(Out out, std::string_view name, double seconds, double whole) {
  fmt::format_to(out, "  {:<28} {:>10} {:>6.1f}%  {}\n", name, seconds_text(seconds), 100 * seconds / whole,
                 bar(seconds / whole));
}

void time_section(Out out, const Report& report) {
  const TimeFigures figures = time_figures(report);
  if (figures.whole <= 0) return;
  std::vector<TimeRow> compute, exposed, waiting, hidden;
  for (const TimeFigures::Kind& kind : figures.kinds) {
    const std::string name(to_string(kind.kind));
    if (kind.compute > 0) compute.push_back({name, kind.compute});
    if (kind.exposed > 0) exposed.push_back({name, kind.exposed});
    const bool pipeline = kind.kind == OpKind::kSend || kind.kind == OpKind::kRecv;
    if (kind.waiting > 0 && !pipeline) waiting.push_back({name, kind.waiting});
    if (kind.busy > kind.exposed) hidden.push_back({name, kind.busy - kind.exposed});
  }
  fmt::format_to(out, "\nwhere the time goes (mean over ranks)\n");
  time_total(out, "compute", figures.compute, figures.whole);
  time_rows(out, compute, figures.whole);
  time_total(out, "exposed communication", figures.exposed, figures.whole);
  time_rows(out, exposed, figures.whole);
  time_total(out, "waiting for other ranks", figures.waiting, figures.whole);
  time_rows(out, waiting, figures.whole);
  time_total(out, "bubble: nothing to do", figures.bubble, figures.whole);
  if (figures.optimizer > 0) time_total(out, "of all that, optimizer", figures.optimizer, figures.whole);
  if (figures.hidden > 0) {
    time_total(out, "hidden communication", figures.hidden, figures.whole);
    time_rows(out, hidden, figures.whole);
  }
}

void pass_section(Out out, const Report& report) {
  const PassSeconds passes = pass_figures(report);
  const double whole = time_figures(report).whole;
  fmt::format_to(out, "\npass by pass (mean over ranks)\n");
  const std::pair<const char*, double> rows[] = {{"forward", passes.forward},
                                                 {"backward", passes.backward},
                                                 {"gradients of weights", passes.weight},
                                                 {"forward beside backward", passes.overlapped},
                                                 {"between passes", passes.between},
                                                 {"optimizer, with its waits", passes.optimizer}};
  for (const auto& [name, seconds] : rows) {
    if (seconds > 0) time_total(out, name, seconds, whole);
  }
}

void expectation_section(Out out, const Report& report) {
  const std::vector<JudgedExpectation> rows = judge_expectations(report);
  if (rows.empty()) return;
  fmt::format_to(out, "\nbeside published figures\n");
  for (const JudgedExpectation& row : rows) {
    const std::string ours = row.ours ? figure_text(*row.ours) : "not in this report";
    fmt::format_to(out, "  {:<34} ours {:>9}  published {:>9}", row.row->metric, ours,
                   figure_text(row.row->value));
    if (row.ours) fmt::format_to(out, "  {:+.1f}%", 100 * row.difference);
    if (row.row->tolerance > 0) fmt::format_to(out, " of ±{:.1f}%", 100 * row.row->tolerance);
    fmt::format_to(out, "  {}\n    {}\n", to_string(row.verdict), row.row->source);
    if (!row.nearest.empty()) fmt::format_to(out, "    did you mean \"{}\"?\n", row.nearest);
    if (!row.row->known_miss.empty()) fmt::format_to(out, "    known miss: {}\n", row.row->known_miss);
  }
}

void interval_line(Out out, const Report& report) {
  const std::optional<IntervalFigures> interval = interval_figures(report);
  if (!interval) return;
  fmt::format_to(out, "  {:<28} {} .. {} (one in three falls outside)",
                 report.serving ? "so the run takes" : "so the step takes", seconds_text(interval->low),
                 seconds_text(interval->high));
  if (interval->covered < 1)
    fmt::format_to(out, "; {:.1f}% of it is the network's, whose error is not in that",
                   100 * (1 - interval->covered));
  fmt::format_to(out, "\n");
}

void measured_lines(Out out, const MeasuringFacts& measured, double wall_s) {
  fmt::format_to(out, "  {:<28} {}\n", "compute measured on", measured.device);
  fmt::format_to(out,
                 "  {:<28} {} distinct, {} by an earlier run; the others in {:.2f} of the run's {:.2f} s\n",
                 "ops measured", measured.ops, measured.from_journal, measured.seconds, wall_s);
  fmt::format_to(out, "  {:<28} {}\n", "one execution of each", seconds_text(measured.once));
}

void trust_section(Out out, const Report& report) {
  const Metrics& metrics = report.metrics;
  const TrustFigures trust = trust_figures(metrics);
  fmt::format_to(out, "\nwhere the numbers come from\n");
  for (int i = 0; i < kNumOrigins; ++i) {
    const double seconds = metrics.seconds_by_origin[i];
    if (seconds <= 0) continue;
    fmt::format_to(out, "  {:<28} {:>16.1f}% of busy time\n", to_string(static_cast<Origin>(i)),
                   100 * seconds / trust.busy);
  }
  if (report.facts.on_cluster && trust.busy > 0 && trust.network_share < 1) {
    fmt::format_to(out, "  {:<28} {:>16.1f}% of a kernel alone, mean over time; the network's is not known\n",
                   "expected error", 100 * trust.kernel_error);
  }
  if (of_timed_iterations(report)) fmt::format_to(out, "  {:<28} {}\n", "weighted by", kWeightedBy);
  interval_line(out, report);
  for (const auto& [name, text] : report.facts.provenance) fmt::format_to(out, "  {:<28} {}\n", name, text);
  if (report.facts.measured) measured_lines(out, *report.facts.measured, report.facts.wall_s);
}

// What the timeline lacks of what was asked for.
void timeline_lines(Out out, const Report& report) {
  if (report.facts.dropped_spans > 0)
    fmt::format_to(out,
                   "  {} spans are not in the timeline: timeline.max_bytes or timeline.window cut them\n",
                   grouped(report.facts.dropped_spans));
  const Scenario& scenario = *report.scenario;
  if (report.service && scenario.timeline.detail == Detail::kOps && report.metrics.spans == 0)
    fmt::format_to(out,
                   "  the timeline keeps iterations and requests, no ops: it has those where /plan/steps is "
                   "\"full\"\n");
}

// Of the rank that has most in the memory of its host.
std::string host_memory_text(const MemoryReport& memory) {
  std::string text;
  const Out out = std::back_inserter(text);
  const auto most = std::max_element(
      memory.classes.begin(), memory.classes.end(),
      [](const ClassMemory& a, const ClassMemory& b) { return total(a.on_host) < total(b.on_host); });
  text += "host memory of the fullest rank\n";
  for (int i = 0; i < kNumMemoryKinds; ++i) {
    if (most->on_host[i].value <= 0) continue;
    fmt::format_to(out, "    {:<26} {:>10}\n", to_string(static_cast<MemoryKind>(i)),
                   to_text(most->on_host[i]));
  }
  fmt::format_to(out, "  {:<28} {:>10} {:>6.1f}% of its share of the node, {}{}\n", "peak",
                 to_text(memory.host_peak()), 100 * (memory.host_peak() / memory.host_capacity),
                 to_text(memory.host_capacity), memory.fits_on_host() ? "" : ": does not fit");
  return text;
}

// Where their time, memory and network go.
std::string of_devices(const Report& report) {
  std::string text = reinforcement_text(report);
  const Out out = std::back_inserter(text);
  time_section(out, report);
  if (report.scenario->kind == ScenarioKind::kTraining) pass_section(out, report);
  if (!report.experts.empty()) fmt::format_to(out, "\n{}", loads_text(report.experts));
  if (report.memory) fmt::format_to(out, "\n{}", memory_text(*report.memory));
  const int steps =
      report.scenario->kind == ScenarioKind::kTraining ? report.scenario->training.num_steps() : 1;
  fmt::format_to(out, "\nnetwork\n  {:<28} {:>10} ({} a device)\n", steps > 1 ? "sent in a step" : "sent",
                 to_text(Bytes{sent_bytes(report)}),
                 to_text(Bytes{sent_bytes(report) / report.scenario->ranks()}));
  if (report.facts.network) text += network_text(*report.facts.network, report.metrics.makespan.seconds());
  if (report.facts.network && steps > 1)
    fmt::format_to(out, "  (carried: in all {} steps)\n", grouped(steps));
  return text + faults_text(report.facts.faults);
}

}  // namespace

std::string memory_text(const MemoryReport& memory) {
  const ClassMemory& worst = memory.classes[memory.worst_class];
  std::string text;
  const Out out = std::back_inserter(text);
  const std::string alive = worst.peak_microbatches == 0  // of a training pipeline alone
                                ? ""
                                : fmt::format(", {} microbatches alive", worst.peak_microbatches);
  fmt::format_to(out, "memory of the fullest rank (class {}{})\n", memory.worst_class, alive);
  for (int i = 0; i < kNumMemoryKinds; ++i) {
    if (worst.at_peak[i].value == 0) continue;
    const double share = worst.at_peak[i].value / memory.capacity.value;
    fmt::format_to(out, "    {:<26} {:>10} {:>6.1f}%  {}\n", to_string(static_cast<MemoryKind>(i)),
                   to_text(worst.at_peak[i]), 100 * share, bar(std::min(share, 1.0)));
  }
  fmt::format_to(out, "  {:<28} {:>10} {:>6.1f}% of {}{}\n", "peak", to_text(worst.peak),
                 100 * (worst.peak / memory.capacity), to_text(memory.capacity),
                 memory.fits() ? "" : ": does not fit");
  if (memory.reserve.value > 0)
    fmt::format_to(out, "  {:<28} {:>10} {:>6.1f}%\n", "reserved", to_text(memory.reserve),
                   100 * (memory.reserve / memory.capacity));
  if (memory.host_peak().value > 0) text += host_memory_text(memory);
  return text;
}

// A scenario is named after its own traffic; another trace may have been set.
std::string title_of(const Scenario& scenario) {
  const TrafficSource* source = scenario.replay           ? &scenario.replay->traffic
                                : scenario.traffic.source ? &*scenario.traffic.source
                                                          : nullptr;
  if (source == nullptr || !source->file) return scenario.name;
  return fmt::format("{}; requests of {}", scenario.name,
                     std::filesystem::path(source->file->path).filename().string());
}

std::string report_text(const Report& report) {
  const Scenario& scenario = *report.scenario;
  std::string text;
  const Out out = std::back_inserter(text);
  fmt::format_to(out, "{}\n", title_of(scenario));
  switch (scenario.kind) {
    case ScenarioKind::kTraining:
      training_headline(out, report);
      break;
    case ScenarioKind::kCollective:
      collective_headline(out, report);
      break;
    case ScenarioKind::kServing:
      text += serving_text(report);
      break;
    case ScenarioKind::kKvReplay:
      text += replay_text(report);
      break;
    case ScenarioKind::kCluster:
      text += report.queues ? queues_text(*report.queues) : cluster_text(*report.cluster);
      break;
  }
  if (!report.replay && !report.service && !report.cluster) text += of_devices(report);
  expectation_section(out, report);
  const bool nobody = report.service && report.serving->completed == 0;  // then no number comes from anywhere
  if (!report.cluster && !nobody) trust_section(out, report);
  timeline_lines(out, report);
  text += uncertainty_text(report);
  fmt::format_to(out, "\n{}, {} detail, seed {}; {:.2f} s of CPU, {}\n", report.facts.executor,
                 report.facts.detail, scenario.seed, report.facts.cpu_s,
                 to_text(Bytes{report.facts.max_rss_bytes}));
  return wrapped(text);
}

}  // namespace moebius
