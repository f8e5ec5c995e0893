#include "workloads/crosscheck/crosscheck.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/crosscheck/recorded_run.h"
#include "workloads/crosscheck/warm_up.h"
#include "workloads/report/run_directory.h"
#include "workloads/schedule/replay.h"

namespace moebius {
namespace {

// The simulator on another machine than the job's. Phases that a job has before it are not judged, and may
// have other ranks.
StartExecutor on_machine(const VirtualMachine& machine, const StartExecutor& simulate) {
  return [&machine, &simulate](const Job& job, const Layout& layout, Recorder& recorder) {
    if (job.is_phase) return simulate(job, layout, recorder);
    const auto placed = std::make_shared<const Layout>(placed_on(machine, layout));
    StartedExecutor engine = simulate(job, *placed, recorder);
    engine.keepers.push_back(placed);
    engine.facts.on_cluster = false;
    engine.facts.provenance.emplace_back("machine", machine.description);
    return engine;
  };
}

// The executor that carries out a schedule with times that were measured before; `facts` of who measured.
StartExecutor replaying(const OpDurations& durations, const RunFacts& facts) {
  return [&durations, &facts](const Job&, const Layout& layout, Recorder& recorder) {
    StartedExecutor engine;
    engine.executor = make_replay(layout, recorder, durations);
    engine.facts = facts;
    engine.facts.provenance.clear();
    return engine;
  };
}

bool is_warm_up(const Job& job, const SubmissionRow& row, std::size_t submissions) {
  if (job.training) return row.step == job.scenario.training.first_step;
  return job.again && static_cast<std::size_t>(row.sequence) < submissions / 2;
}

std::string describe_warm_up(const Job& job) {
  return job.training ? "a step" : job.again ? "a pass through the schedule" : "";
}

// Hooks of a run that warms up, or does not.
Hooks hooks_of(const CrosscheckRequest& request, const Job& job) {
  Hooks hooks;
  if (request.warm && job.training) hooks.barrier = job.scenario.training.first_step + 1;
  return hooks;
}

void leave_out_warm_up(const Job& job, Outcome& outcome) {
  const std::size_t submissions = outcome.timeline.submissions.size();
  outcome.timeline = only(std::move(outcome.timeline),
                          [&](const SubmissionRow& row) { return !is_warm_up(job, row, submissions); });
}

// The same schedule executed again and again.
class Executions {
 public:
  Executions(const CrosscheckRequest& request, Crosscheck& result) : request_(request), result_(result) {}

  void run() {
    for (int i = 0; i < request_.executions; ++i) once(i == 0);
    result_.executions = request_.executions;
    const RunFacts& first = outcomes_.front().report.facts;
    result_.executor = first.executor;
    result_.numbers = !first.losses.empty() ? "losses" : !first.tokens.empty() ? "answers" : "";
    for (const Outcome& outcome : outcomes_) {
      const RunFacts& facts = outcome.report.facts;
      if (facts.losses != first.losses || facts.tokens != first.tokens) result_.repeatable = false;
    }
  }

  // What stands for all of them.
  Outcome outcome() {
    if (durations_.empty()) return std::move(*of_median_makespan());
    const OpDurations medians = median_of(durations_);
    jobs_.push_back(request_.read());
    jobs_.back().phases.clear();  // only training was measured
    Outcome outcome = perform(jobs_.back(), replaying(medians, outcomes_.front().report.facts), {});
    if (request_.warm) leave_out_warm_up(jobs_.back(), outcome);
    return outcome;
  }

 private:
  void once(bool first) {
    jobs_.push_back(request_.read());
    Job& job = jobs_.back();
    job.scenario.save.clear();  // it is executed again and again, for its times
    GroupLedger ledger(job.workload().layout());
    Hooks hooks = hooks_of(request_, job);
    bool in_phase = false;  // whose submissions have numbers of their own, and are not judged
    if (first)
      hooks.observer = [&](const Submission& submission) {
        if (!in_phase) ledger.scheduled(submission);
      };
    const StartExecutor execute = [&](const Job& of, const Layout& layout, Recorder& recorder) {
      in_phase = of.is_phase;
      return request_.execute(of, layout, recorder);
    };
    hooks.inspect = [&](const StartedExecutor& engine) {
      if (in_phase) return;
      if (first) engine.tell_transfers(ledger);
      if (engine.durations) durations_.push_back(engine.durations());
    };
    outcomes_.push_back(perform(job, execute, hooks));
    if (request_.warm) leave_out_warm_up(job, outcomes_.back());
    // A machine of cores is compared with times of cores, and several processes have none.
    if (request_.machine && durations_.empty() && outcomes_.back().report.facts.executor == "host")
      throw input_error("--profile: ops are timed in one process only: crosscheck without a launcher");
    if (!first) return;
    result_.groups = ledger.rows();
    if (request_.warm) result_.warm_up = describe_warm_up(job);
  }

  std::vector<Outcome>::iterator of_median_makespan() {
    const auto middle = outcomes_.begin() + static_cast<std::ptrdiff_t>((outcomes_.size() - 1) / 2);
    std::nth_element(outcomes_.begin(), middle, outcomes_.end(), [](const Outcome& x, const Outcome& y) {
      return last_end(x.timeline) < last_end(y.timeline);
    });
    return middle;
  }

  const CrosscheckRequest& request_;
  Crosscheck& result_;
  std::deque<Job> jobs_;  // reports refer to them
  std::vector<Outcome> outcomes_;
  std::vector<OpDurations> durations_;
};

bool splits_cores(const TrainingPlan& plan) {
  return plan.tp_chunks > 0 || plan.tensor_sms > 0 || plan.communication_sms > 0;
}

Outcome simulated(const CrosscheckRequest& request, Job& job, Crosscheck& result) {
  std::optional<VirtualMachine> machine;
  if (request.machine) {
    machine = request.machine(job);
    job.scenario.cluster = machine->cluster;
    if (splits_cores(job.scenario.plan))
      machine->description += "; cores that the plan splits are left whole";
    result.machine = machine->description;
  }
  Outcome outcome = perform(job, machine ? on_machine(*machine, request.simulate) : request.simulate,
                            hooks_of(request, job));
  if (request.warm) leave_out_warm_up(job, outcome);
  return outcome;
}

void write(const RunDirectory& directory, const std::string& name, const Outcome& outcome) {
  write_run(directory.path(name), {report_json(outcome.report), report_text(outcome.report)},
            outcome.timeline);
}

}  // namespace

CrosscheckGoals goals_of(const std::string& executor) {
  return executor == "cuda" ? CrosscheckGoals{0.10, 0.10} : CrosscheckGoals{0.20, 0.15};
}

bool Crosscheck::same() const {
  return comparison.same_structure() &&
         std::all_of(groups.begin(), groups.end(), [](const GroupBytes& row) { return row.agree(); });
}

double Crosscheck::makespan_error() const {
  const double a = comparison.makespan_a.seconds(), b = comparison.makespan_b.seconds();
  return b > 0 ? std::abs(a - b) / b : 0;
}

namespace {

bool decides_by_clock(const Job& job) {
  return job.serving && !job.scenario.service.phases.empty() && !job.again;
}

// In a closed loop; what was issued, and what requests saw.
struct Lived {
  std::shared_ptr<RecordedSchedule> schedule = std::make_shared<RecordedSchedule>();
  std::vector<RequestTimes> times;
  std::int64_t iterations = 0;
};

Lived live(Job job, const StartExecutor& start) {
  Lived lived;
  lived.schedule->layout = job.layout();
  Hooks hooks{.observer = [&](const Submission& of) { lived.schedule->submissions.push_back(of); },
              .wants_spans = false};
  perform(job, start, hooks);
  lived.times = job.serving->times();
  lived.iterations = job.serving->figures({}).iterations;
  return lived;
}

Lived live_simulated(const CrosscheckRequest& request, Job job) {
  if (!request.machine) return live(std::move(job), request.simulate);
  const VirtualMachine machine = request.machine(job);
  job.scenario.cluster = machine.cluster;
  return live(std::move(job), on_machine(machine, request.simulate));
}

// Before the work: what could not be written after it.
using MadeOutputs = std::vector<std::unique_ptr<MadeDirectories>>;
MadeOutputs require_outputs(const std::string& out) {
  MadeOutputs made;
  if (out.empty()) return made;
  for (const char* side : {"/simulated", "/executed"}) made.push_back(require_run_directory(out + side));
  require_writable(out + "/crosscheck.json");
  std::reverse(made.begin(), made.end());  // the outermost, which the first one made, goes last
  return made;
}

Crosscheck crosscheck_service(const CrosscheckRequest& request) {
  const Lived executed = live(request.read(), request.live ? request.live : request.execute);
  const Lived simulated = live_simulated(request, request.read());
  CrosscheckRequest again = request;
  const std::shared_ptr<const RecordedSchedule> schedule =
      request.warm ? twice(*executed.schedule) : executed.schedule;
  again.read = [&] {
    Job job = request.read();
    job.again = std::make_unique<RecordedRun>(schedule);
    return job;
  };
  Crosscheck result = crosscheck(again);
  result.loop = compare_latencies(simulated.times, executed.times);
  result.loop->simulated_iterations = simulated.iterations;
  result.loop->executed_iterations = executed.iterations;
  if (!request.out.empty()) write_file(request.out + "/crosscheck.json", to_json(result));
  return result;
}

}  // namespace

Crosscheck crosscheck(const CrosscheckRequest& request) {
  const MadeOutputs made = require_outputs(request.out);
  if (decides_by_clock(request.read())) return crosscheck_service(request);
  Crosscheck result;
  Job job = request.read();
  require_fit(job);
  result.scenario = job.scenario.name;
  const RunDirectory directory(request.out, {"simulated", "executed"});
  write(directory, "simulated", simulated(request, job, result));
  Executions executions(request, result);
  executions.run();
  write(directory, "executed", executions.outcome());
  // From here both sides stand in files, joined by the ops of one schedule.
  const MappedTimeline a(timeline_path(directory.path("simulated"))),
      b(timeline_path(directory.path("executed")));
  result.comparison = compare(a, b, ErrorBase::kB);
  if (result.comparison.same_structure()) result.paths = compare_paths(a, b);
  if (!request.out.empty()) write_file(directory.path("crosscheck.json"), to_json(result));
  return result;
}

}  // namespace moebius
