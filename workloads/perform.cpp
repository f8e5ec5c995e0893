#include "workloads/perform.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "workloads/progress_bar.h"
#include "workloads/report/run_directory.h"

namespace moebius {
namespace {

void add_process_use(RunFacts& facts, std::chrono::steady_clock::time_point started) {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  facts.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  facts.cpu_s = seconds(use.ru_utime) + seconds(use.ru_stime);
  facts.max_rss_bytes = 1024.0 * static_cast<double>(use.ru_maxrss);  // Linux counts in KiB
}

void name_run(Timeline& timeline, const Job& job, const RunFacts& facts) {
  const std::vector<std::pair<std::string, std::string>> run{{"moebius", kVersion},
                                                             {"scenario", job.scenario.name},
                                                             {"executor", facts.executor},
                                                             {"detail", facts.detail},
                                                             {"seed", std::to_string(job.scenario.seed)}};
  timeline.facts.insert(timeline.facts.begin(), run.begin(), run.end());
}

}  // namespace

Outcome perform(Job& job, const StartExecutor& start, const Hooks& hooks) {
  const auto started = std::chrono::steady_clock::now();
  ObservedWorkload workload(job.workload(), hooks.observer);
  Recorder recorder(workload.layout(), job.scenario.timeline);
  if (job.training) job.training->record_memory(recorder);
  StartedExecutor engine = start(job, workload.layout(), recorder);
  Time end;
  {
    ProgressBar bar;
    end = execute(workload, *engine.executor, recorder, [&](double share) { bar.show(share); });
  }
  if (engine.losses && job.training) engine.facts.losses = engine.losses();
  if (engine.tell_facts) engine.tell_facts(engine.facts);
  hooks.inspect(engine);
  if (engine.leave) engine.leave();
  Outcome outcome;
  outcome.report = {&job.scenario, std::move(engine.facts), recorder.finish(end), job.memory};
  RunFacts& facts = outcome.report.facts;
  facts.provenance.emplace_back("schedule", fmt::format("{:016x}", recorder.schedule_hash()));
  facts.provenance.emplace_back("moebius", kVersion);
  facts.dropped_spans = recorder.dropped_spans();
  outcome.timeline = std::move(recorder.timeline());
  name_run(outcome.timeline, job, facts);
  add_process_use(facts, started);
  return outcome;
}

bool Crosscheck::same() const {
  return comparison.same_structure() &&
         std::all_of(groups.begin(), groups.end(), [](const GroupBytes& row) { return row.agree(); });
}

Crosscheck crosscheck(const std::function<Job()>& read, const StartExecutor& simulate, const StartExecutor& execute,
                      const std::string& out) {
  Job simulated = read(), executed = read();
  require_fit(simulated);
  // From here both sides hold the same schedule.
  GroupLedger ledger(executed.workload().layout());
  const Outcome a = perform(simulated, simulate, {});
  const Outcome b = perform(executed, execute,
                            {.observer = [&](const Submission& submission) { ledger.scheduled(submission); },
                             .inspect = [&](const StartedExecutor& engine) { engine.tell_transfers(ledger); }});
  const RunDirectory directory(out);
  write_run(directory.path("simulated"), {report_json(a.report), report_text(a.report)}, a.timeline);
  write_run(directory.path("executed"), {report_json(b.report), report_text(b.report)}, b.timeline);
  return {.scenario = simulated.scenario.name,
          .executor = b.report.facts.executor,
          .comparison = compare(MappedTimeline(timeline_path(directory.path("simulated"))),
                                MappedTimeline(timeline_path(directory.path("executed")))),
          .groups = ledger.rows()};
}

std::string to_text(const Crosscheck& result) {
  const std::string who = result.executor == "cuda" ? "the device" : "the host";
  return fmt::format("{}\n{}\n{}: ops, order and bytes {}; {}'s times are shown, not judged\n",
                     to_text(result.comparison, "simulated", "executed on " + who), to_text(result.groups),
                     result.scenario, result.same() ? "agree" : "differ", who);
}

}  // namespace moebius
