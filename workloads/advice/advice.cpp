#include "workloads/advice/advice.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "workloads/advice/switches.h"
#include "workloads/crew.h"
#include "workloads/report/report_figures.h"

namespace moebius {
namespace {

double of(const std::array<double, kNumOpKinds>& seconds, std::initializer_list<OpKind> kinds) {
  double sum = 0;
  for (const OpKind kind : kinds) sum += seconds[static_cast<int>(kind)];
  return sum;
}

double with(const std::array<double, kNumGroupRoles>& seconds, std::initializer_list<GroupRole> groups) {
  double sum = 0;
  for (const GroupRole group : groups) sum += seconds[static_cast<int>(group)];
  return sum;
}

double sum_of(const std::array<double, kNumOpKinds>& seconds) {
  double sum = 0;
  for (const double part : seconds) sum += part;
  return sum;
}

// Exposed communication by whom it meets; what meets nobody is between a device and its host.
std::vector<Cause> causes_of(const Breakdown& all, int steps) {
  const double experts = with(all.exposed_by_group, {GroupRole::kExpert});
  const double pipeline = with(all.exposed_by_group, {GroupRole::kNext, GroupRole::kPrevious});
  const double parts = with(all.exposed_by_group, {GroupRole::kTensor, GroupRole::kContext,
                                                   GroupRole::kDenseTensor, GroupRole::kExpertTensor});
  const double input = of(all.exposed, {OpKind::kInput}),
               nobody = with(all.exposed_by_group, {GroupRole::kNone});
  const double replicas =
      std::max(0.0, sum_of(all.exposed) - experts - pipeline - parts - std::max(nobody, input));
  const double waiting = sum_of(all.waiting) - of(all.waiting, {OpKind::kSend, OpKind::kRecv});
  std::vector<Cause> causes{{"exposed dispatch and combine", experts},
                            {"exposed messages between stages", pipeline},
                            {"input: batches that are not read yet", input},
                            {"exposed reduction of gradients, gathering of parameters", replicas},
                            {"exposed tensor- and context-parallel communication", parts},
                            {"exposed copies to and from host memory", std::max(0.0, nobody - input)},
                            {"waiting for slower ranks", waiting},
                            {"pipeline bubble", all.idle - waiting},
                            {"computing activations again", all.recompute},
                            {"optimizer", all.compute_by_phase[static_cast<int>(Phase::kOptimizer)]}};
  for (Cause& cause : causes) cause.seconds /= steps;
  std::erase_if(causes, [](const Cause& cause) { return cause.seconds <= 0; });
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.seconds > b.seconds; });
  return causes;
}

// The first line, without the file or the scenario's name: they are those of the run.
std::string refusal_of(const Error& error, const std::string& scenario) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with(scenario + " ")) return text.substr(scenario.size() + 1);
  const std::size_t pointer = text.find(" /");  // after the file and its line, or --set
  return pointer == std::string::npos ? text : text.substr(pointer + 1);
}

// A plan that only reports its memory runs all the same.
std::string lack_of(const Job& job) {
  const MemoryReport& memory = *job.memory;
  if (!memory.fits())
    return fmt::format("{} of {} a device", to_text(memory.peak()), to_text(memory.capacity));
  return memory.fits_on_host() ? "" : "more host memory than there is";
}

// Rank by rank, where that is quick and folding would say too much.
Job job_of(const Switch& given, const ReadChanged& read) {
  constexpr int kFewRanks = 256;
  Job job = read(given.sets);
  if (!folding_overstates(job.scenario) || job.layout().ranks > kFewRanks) return job;
  std::vector<std::string> unfolded = given.sets;
  unfolded.emplace_back("/plan/fold=false");
  return read(unfolded);
}

TrainingFigures figures_of(Job job, const StartExecutor& start) {
  job.scenario.timeline.detail = Detail::kNone;
  return training_figures(perform(job, start, {.wants_spans = false, .quiet = true}).report);
}

// What others are compared with.
double tokens_per_second(const Report& run, const ReadChanged& read, const StartExecutor& start) {
  if (!folding_overstates(*run.scenario)) return training_figures(run).tokens_per_s;
  return figures_of(job_of({}, read), start).tokens_per_s;
}

TriedSwitch tried(const Switch& given, const std::string& name, double base, const ReadChanged& read,
                  const StartExecutor& start) {
  TriedSwitch result{.name = given.name, .sets = given.sets, .refusal = {}};
  try {
    Job job = job_of(given, read);
    if (folding_overstates(job.scenario)) result.name += " (folded: may be up to 13% too slow)";
    require_fit(job);
    result.lacks = lack_of(job);
    const TrainingFigures figures = figures_of(std::move(job), start);
    result.step_time_s = figures.step_time_s;
    result.gain = figures.tokens_per_s / base - 1;
  } catch (const Error& error) {
    result.refusal = refusal_of(error, name);
  }
  return result;
}

}  // namespace

Advice advise(const Outcome& run, const ReadChanged& read, const StartExecutor& start) {
  const Scenario& scenario = *run.report.scenario;
  Advice advice;
  advice.causes = causes_of(run.report.metrics.breakdown, scenario.training.num_steps());
  if (!start) {
    advice.untried = "told at --detail fluid, since SimGrid's own network has one run a process";
    return advice;
  }
  const Job same = read({});
  const double base = tokens_per_second(run.report, read, start);
  const std::vector<Switch> open = open_switches(scenario, same.layout());
  advice.switches.resize(open.size());
  work_side_by_side(open.size(), [&](std::size_t i) {
    advice.switches[i] = tried(open[i], scenario.name, base, read, start);
  });
  // What does not fit is no help before more memory is bought.
  const auto place = [](const TriedSwitch& of) {
    return std::tuple(!of.refusal.empty(), !of.lacks.empty(), -of.gain);
  };
  std::stable_sort(advice.switches.begin(), advice.switches.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return advice;
}

std::string to_text(const Advice& advice) {
  std::string text = "what costs time (of a step, mean over ranks)\n";
  for (const Cause& cause : advice.causes)
    text += fmt::format("  {:<58} {:>10}\n", cause.name, to_text(time_from_seconds(cause.seconds)));
  if (!advice.untried.empty()) return text + fmt::format("\nwhat would help: {}\n", advice.untried);
  text += "\nwhat would help: single switches, each simulated\n";
  std::size_t widest = 0;
  for (const TriedSwitch& tried : advice.switches) widest = std::max(widest, tried.name.size());
  for (const TriedSwitch& tried : advice.switches) {
    const std::string what = tried.refusal.empty()
                                 ? fmt::format("{:+.1f}% tokens/s, step {}", 100 * tried.gain,
                                               to_text(time_from_seconds(tried.step_time_s)))
                                 : "not possible: " + tried.refusal;
    const std::string lacks = tried.lacks.empty() ? "" : "; does not fit: " + tried.lacks;
    text += fmt::format("  {:<{}}  {}{}\n", tried.name, widest, what, lacks);
    if (tried.refusal.empty() && tried.gain > 0)
      text += fmt::format("    --set '{}'\n", fmt::join(tried.sets, "' --set '"));
  }
  return text;
}

}  // namespace moebius
