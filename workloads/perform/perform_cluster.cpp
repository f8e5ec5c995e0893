#include "workloads/perform/perform_cluster.h"

#include <chrono>

#include <fmt/format.h>

#include "workloads/perform/job_step.h"
#include "workloads/report/report.h"

namespace moebius {

namespace {

// What a step of the job takes, carried out in the same process.
void simulate_step(Job& step, const StartExecutor& start, ClusterJob& job, RunFacts& facts) {
  const Outcome outcome = perform(step, start, {.wants_spans = false, .quiet = true});
  const JobStep one = job_step(outcome.report);
  job.step = time_from_seconds(one.seconds);
  job.tokens_per_s = one.tokens / one.seconds;
  facts.provenance.emplace_back("step of " + job.name,
                                fmt::format("{}: {}", step.scenario.file, to_text(job.step)));
}

}  // namespace

Outcome perform_cluster(Job& job, const StartExecutor& start) {
  const auto started = std::chrono::steady_clock::now();
  Outcome outcome = outcome_of_events(job);
  RunFacts& facts = outcome.report.facts;
  ClusterPlan plan = job.scenario.operations->plan;
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
    if (job.steps[i]) simulate_step(*job.steps[i], start, plan.jobs[i], facts);
  }
  outcome.report.cluster = cluster_figures(plan, job.scenario.seed);
  facts.provenance.emplace_back("moebius", version_text());
  add_process_use(facts, started);
  return outcome;
}

}  // namespace moebius
