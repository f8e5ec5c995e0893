#include "workloads/perform/perform.h"

#include <sys/resource.h>

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/stopwatch.h"
#include "workloads/perform/perform_cluster.h"
#include "workloads/perform/perform_queues.h"
#include "workloads/perform/perform_service.h"
#include "workloads/perform/stretches.h"
#include "workloads/progress_bar.h"
#include "workloads/reinforcement_phases.h"
#include "workloads/report/summary.h"
#include "workloads/scenario/placement_keys.h"
#include "workloads/service/carried_job.h"
#include "workloads/serving/left_out.h"
#include "workloads/training/device_speeds.h"
#include "workloads/training/pipeline/mixed_stages.h"
#include "workloads/training/pipeline/split_groups.h"

namespace moebius {

Outcome outcome_of_events(const Job& job) {
  Outcome outcome;
  outcome.report.scenario = &job.scenario;
  RunFacts& facts = outcome.report.facts;
  facts.executor = "sim";
  facts.detail = "events";
  facts.on_cluster = true;
  return outcome;
}

void add_process_use(RunFacts& facts, std::chrono::steady_clock::time_point started) {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  facts.wall_s = seconds_since(started);
  facts.cpu_s = seconds(use.ru_utime) + seconds(use.ru_stime);
  facts.max_rss_bytes = 1024.0 * static_cast<double>(use.ru_maxrss);  // Linux counts in KiB
}

bool folding_overstates(const Scenario& scenario) {
  const TrainingPlan& plan = scenario.plan;
  const bool pairs = plan.overlap_two_batch || plan.schedule == PipelineKind::kDualPipe ||
                     plan.schedule == PipelineKind::kDualPipeV;
  const bool even = scenario.training.popularity.kind == PopularityKind::kBalanced || plan.fills_buffers();
  return plan.fold && pairs && plan.ep > 1 && !even;
}

void name_run(Timeline& timeline, const Job& job, const RunFacts& facts) {
  const std::vector<std::pair<std::string, std::string>> run{{"moebius", version_text()},
                                                             {"scenario", job.scenario.name},
                                                             {"executor", facts.executor},
                                                             {"detail", facts.detail},
                                                             {"seed", std::to_string(job.scenario.seed)}};
  timeline.facts.insert(timeline.facts.begin(), run.begin(), run.end());
  if (job.training)
    timeline.facts.emplace_back("training_steps", std::to_string(job.scenario.training.num_steps()));
  for (const FaultFacts& fault : facts.faults) timeline.facts.emplace_back("fault", one_line(fault));
}

namespace {

// A run that goes on from a checkpoint has none of the steps before.
std::vector<double> losses_of_run(const StartedExecutor& engine, const TrainingWorkload& workload) {
  std::vector<double> losses = engine.losses();
  const auto before = std::min(losses.size(), static_cast<std::size_t>(workload.first_step));
  losses.erase(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(before));
  return losses;
}

// "normal, sigma 0.01: the slowest of 2048, device 713, at 0.966 of its kind".
std::string speeds_text(const Scenario& scenario, const std::vector<std::int32_t>& devices) {
  const SpeedVariation& variation = scenario.cluster->variation;
  const DeviceSpeeds speeds(variation, scenario.seed);
  const std::int32_t slowest = slowest_device(speeds, devices);
  return fmt::format("{}, sigma {}: the slowest of {}, device {}, at {:.3f} of its kind",
                     variation.law == SpeedLaw::kNormal ? "normal" : "lognormal", variation.sigma,
                     scenario.ranks(), slowest, speeds.of(slowest));
}

std::string why_unfolded(const Scenario& scenario) {
  if (scenario.cluster->by_ports()) return "off: which ports a message takes differs from rank to rank";
  if (!scenario.faults.empty()) return "off: nodes become slow one by one";
  if (placement_of(scenario).any()) return "off: where ranks stand (/plan/placement)";
  return "off: pools of different kinds";
}

// Before the job itself, one after the other.
std::vector<PhaseTime> perform_phases(Job& job, const StartExecutor& start, const Hooks& hooks) {
  Hooks own{.observer = hooks.observer, .wants_spans = false, .quiet = hooks.quiet};
  std::vector<PhaseTime> times;
  for (const JobPhase& phase : job.phases) {
    const Outcome outcome = perform(*phase.job, start, own);
    times.push_back({phase.phase, outcome.report.metrics.makespan.seconds()});
  }
  return times;
}

// Requests as they come, with a bar: of a file nobody knows how many there will be.
class ShownTraffic : public TrafficStream {
 public:
  ShownTraffic(TrafficStream& traffic, std::int64_t requests, bool quiet)
      : traffic_(traffic), requests_(requests) {
    if (!quiet) bar_.emplace();
  }

  bool next(TrafficRequest& request) override {
    if (++taken_ % kAtOnce == 0 && bar_) show();
    return traffic_.next(request);
  }

 private:
  static constexpr std::int64_t kAtOnce = 256;
  void show() {
    if (requests_ > 0) return bar_->show(static_cast<double>(taken_) / static_cast<double>(requests_));
    bar_->show(0, fmt::format("{} requests", taken_));
  }

  TrafficStream& traffic_;
  std::int64_t requests_, taken_ = 0;
  std::optional<ProgressBar> bar_;
};

// Errors of rows say their file; those of what rows are to each other do not.
kv::ReplayFigures replayed_figures(const KvReplayWorkload& replayed, bool quiet) {
  const std::unique_ptr<TrafficStream> traffic = open_traffic(replayed.traffic);
  ShownTraffic shown(*traffic, replayed.traffic.file ? 0 : replayed.traffic.generator.requests, quiet);
  try {
    return kv::replay(shown, replayed.cache);
  } catch (const Error& error) {
    const std::string sentence = error.what();
    if (!replayed.traffic.file || !sentence.starts_with("request ")) throw;
    throw input_error(fmt::format("{}: {}", replayed.traffic.file->path, sentence));
  }
}

// No devices and no schedule: requests against an index, whose clock is the trace's.
Outcome perform_replay(const Job& job, std::chrono::steady_clock::time_point started, bool quiet) {
  const KvReplayWorkload& replayed = *job.scenario.replay;
  Outcome outcome;
  outcome.report.scenario = &job.scenario;
  outcome.report.replay = replayed_figures(replayed, quiet);
  RunFacts& facts = outcome.report.facts;
  facts.executor = "sim";
  facts.detail = "blocks";
  facts.on_cluster = false;
  facts.provenance = {{"traffic", describe(replayed.traffic)},
                      {"schedule", settings_hash(job.scenario)},
                      {"moebius", version_text()}};
  name_run(outcome.timeline, job, facts);
  add_process_use(facts, started);
  return outcome;
}

// A run from its first op to its last.
struct Run {
  Run(const Layout& layout, const RecorderOptions& options) : recorder(layout, options) {}

  Recorder recorder;
  StartedExecutor engine;
  Time end;
  std::string interrupted;
};

// `pasts`: what boards have in mind when it begins; empty: nothing.
std::unique_ptr<Run> run_once(Job& job, const StartExecutor& start, const Hooks& hooks,
                              const std::vector<BoardPast>& pasts) {
  ObservedWorkload workload(job.workload(), hooks.observer, hooks.barrier);
  RecorderOptions kept = job.scenario.timeline;
  kept.stores = hooks.wants_spans;
  auto run = std::make_unique<Run>(workload.layout(), kept);
  if (job.training) job.training->record_memory(run->recorder);
  run->engine = start(job, workload.layout(), run->recorder);
  const bool begins = job.rehearses || !pasts.empty();
  if (begins && run->engine.clocks != nullptr) run->engine.clocks->begin(pasts);
  Stretches stretches(job, run->engine);
  do {
    std::optional<ProgressBar> bar;
    if (!hooks.quiet) bar.emplace();
    run->end = execute(workload, *run->engine.executor, run->recorder, [&](double share) {
      if (bar) bar->show(share);
      stretches.look();
    });
  } while (stretches.go_on());
  run->interrupted = stretches.interrupted();
  return run;
}

// Steps are trained by the ten thousand: boards begin them with the clocks that steps before leave behind.
// Where that would make no difference to be seen, the first run, whose boards have no past, is the one.
std::unique_ptr<Run> run_as_repeated(Job& job, const StartExecutor& start, Hooks hooks) {
  constexpr int kMostRuns = 5;  // two do, or three
  constexpr double kSameTime =
      0.0005;  // of a board: all together may lose twice that, waiting for each other
  job.rehearses = job.training && !job.again;
  std::vector<BoardPast> pasts;
  for (int runs = 1;; ++runs) {
    std::unique_ptr<Run> run = run_once(job, start, hooks, pasts);
    BoardClocks* clocks = run->engine.clocks;
    if (!job.rehearses || clocks == nullptr) return run;
    const bool settled = runs == kMostRuns || !clocks->repeat() || clocks->change() < kSameTime;
    if (settled && !run->engine.stands_in) return run;
    job.rehearses = !settled;
    if (!settled) pasts = clocks->pasts();
    run.reset();
    job.training->begin_again();
    hooks.observer = [](const Submission&) {};  // it has heard of all that is submitted
  }
}

}  // namespace

Outcome perform(Job& job, const StartExecutor& start, const Hooks& hooks) {
  if (job.is_service()) return perform_service(job, start, hooks);
  if (job.scenario.operations && job.scenario.operations->queueing) return perform_queues(job, start, hooks);
  if (job.scenario.operations) return perform_cluster(job, start);
  const auto started = std::chrono::steady_clock::now();
  if (job.scenario.replay) return perform_replay(job, started, hooks.quiet);
  const std::vector<PhaseTime> phases = perform_phases(job, start, hooks);
  const std::unique_ptr<Run> run = run_as_repeated(job, start, hooks);
  Recorder& recorder = run->recorder;
  StartedExecutor& engine = run->engine;
  if (engine.losses && job.training) engine.facts.losses = losses_of_run(engine, job.scenario.training);
  if (engine.tensor && job.serving && !job.again) engine.facts.tokens = job.serving->generated(engine.tensor);
  if (engine.tell_facts) engine.tell_facts(engine.facts);
  hooks.inspect(engine);
  if (engine.leave) engine.leave();
  Outcome outcome;
  outcome.interrupted = run->interrupted;
  outcome.report = {&job.scenario, std::move(engine.facts), recorder.finish(run->end), job.memory,
                    std::nullopt};
  RunFacts& facts = outcome.report.facts;
  if (job.tenants) outcome.report.tenants = job.tenants->figures();
  if (job.flows) outcome.report.flows = job.flows->times();
  if (job.again) facts.provenance.emplace_back("replay", "what another run issued; it decides nothing");
  if (job.serving) {
    outcome.report.serving = job.serving->figures(job.scenario.goal);
    if (!job.scenario.service.phases.empty()) {
      outcome.report.service = carried_figures(job, facts, outcome.report.metrics);
      outcome.report.serving = figures_of_service(job);
      set_fullest_cache(outcome.report.service->pools, *outcome.report.serving);
      if (!job.again) outcome.report.metrics.makespan = job.serving->system().span();
    }
  }
  // Answers and losses are those of a model without it.
  std::string missing;
  if (job.serving) missing = left_out(job.scenario.model);
  if (!facts.losses.empty()) missing = left_out_of_training(job.scenario.model);
  if (!missing.empty()) facts.provenance.emplace_back("left out", missing);
  if (job.scenario.unfolded) facts.provenance.emplace_back("folding", why_unfolded(job.scenario));
  if (job.scenario.cluster->variation.any())
    facts.provenance.emplace_back("speed of devices", speeds_text(job.scenario, job.layout().device_of_rank));
  if (job.training) {
    const bool even = job.scenario.training.popularity.kind == PopularityKind::kBalanced;
    if (!even || job.scenario.plan.capacity > 0) outcome.report.experts = job.training->expert_loads();
    if (folding_overstates(job.scenario))
      facts.provenance.emplace_back("folding",
                                    "uneven experts in pairs of passes: a step up to 13% too long; "
                                    "/plan/fold=false simulates every rank");
    for (const std::string& sentence : groups_across_vendors(*job.scenario.cluster, job.scenario.plan))
      facts.provenance.emplace_back("warning", sentence);
    for (const std::string& sentence : groups_over_domains(*job.scenario.cluster, job.layout()))
      facts.provenance.emplace_back("warning", sentence);
  }
  facts.provenance.emplace_back("schedule", fmt::format("{:016x}", recorder.schedule_hash()));
  facts.provenance.emplace_back("moebius", version_text());
  facts.dropped_spans = recorder.dropped_spans();
  outcome.timeline = std::move(recorder.timeline());
  name_run(outcome.timeline, job, facts);
  add_process_use(facts, started);
  if (job.scenario.rl)
    outcome.report.reinforcement =
        reinforcement_figures(job.scenario, phases, run->end.seconds() / job.scenario.training.num_steps());
  return outcome;
}

}  // namespace moebius
