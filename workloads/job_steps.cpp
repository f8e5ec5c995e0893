#include "workloads/job_steps.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/scenario/named_files.h"
#include "workloads/scenario/scenario_parts.h"

namespace moebius {
namespace {

// A step of one of a cluster's jobs.
std::unique_ptr<Job> step_of(const Place& at, const std::string& path, const Library& library) {
  const std::string file = named_path(at, path);
  auto step = std::make_unique<Job>(read_job(file, {}, library));
  if (!step->training)
    throw input_error(fmt::format("{}: expected a training scenario, found {}", file,
                                  to_string(step->scenario.kind)));
  step->scenario.timeline.detail = Detail::kNone;
  step->is_phase = true;
  require_fit(*step);
  return step;
}

// A checkpoint is of the model whose steps are simulated.
void take_state(const Job& step, const Document& document, std::size_t number, ClusterJob& job) {
  const Model& model = step.scenario.model;
  if (!job.model.empty() && job.model != model.id)
    place_at(document, fmt::format("/jobs/{}/model", number))
        .fail(fmt::format("expected the model of its scenario, \"{}\", or none, found \"{}\"", model.id,
                          job.model));
  if (job.state.value <= 0) job.state = {job.bytes_per_parameter * count_parameters(model).total()};
}

// What it takes of the cluster is what its step was simulated on.
void stand_alike(const Job& step, const Scenario& scenario, const Document& document, std::size_t number) {
  const Pool& nodes = scenario.cluster->pools.front();
  const int held = scenario.operations->plan.jobs[number].nodes * nodes.node.accelerators;
  int devices = 0;
  for (const Pool& pool : step.scenario.cluster->pools) {
    devices += pool.devices();
    if (pool.accelerator.id != nodes.accelerator.id)
      place_at(document, fmt::format("/jobs/{}/scenario", number))
          .fail(fmt::format("expected a scenario on \"{}\", found one on \"{}\"", nodes.accelerator.id,
                            pool.accelerator.id));
  }
  if (devices != held)
    place_at(document, fmt::format("/jobs/{}/nodes", number))
        .fail(fmt::format("expected nodes with the {} devices of its scenario, found {}", devices, held));
}

}  // namespace

void read_job_steps(const Document& document, const Library& library, Job& job) {
  const std::vector<std::string>& paths = job.scenario.operations->job_scenarios;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const Place at = place_at(document, fmt::format("/jobs/{}/scenario", i));
    job.steps.push_back(paths[i].empty() ? nullptr : step_of(at, paths[i], library));
    if (!job.steps.back()) continue;
    take_state(*job.steps.back(), document, i, job.scenario.operations->plan.jobs[i]);
    stand_alike(*job.steps.back(), job.scenario, document, i);
  }
}

}  // namespace moebius
