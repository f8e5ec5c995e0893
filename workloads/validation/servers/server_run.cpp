#include "workloads/validation/servers/server_run.h"

#include "hw/error.h"

namespace moebius {

ServerRun run_server(const Document& scenario, const Library& library, const StartExecutor& start,
                     StepTimings& timings) {
  try {
    Job job = read_job(scenario, {}, library);
    job.scenario.timeline.detail = Detail::kNone;
    Hooks hooks;
    hooks.quiet = true;
    hooks.timings = &timings;
    const Outcome outcome = perform(job, start, hooks);
    const ServingFigures& figures = *outcome.report.serving;
    if (figures.completed < figures.submitted) return {.failure = "requests longer than the cache"};
    return {figures.ttft.mean, figures.tpot.mean, figures.ttft.p50, figures.tpot.p50,
            outcome.report.devices()};
  } catch (const Error& error) {
    const std::string what = error.what();
    if (error.kind() == Error::Kind::kRun)
      return {.failure = "weights and an iteration do not fit on the devices"};
    return {.failure = what.substr(what.find(": ") + 2)};
  }
}

}  // namespace moebius
