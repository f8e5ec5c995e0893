#include "workloads/native_scales.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/architecture.h"

namespace moebius {

namespace {

void require_micro_scales(const Scenario& scenario) {
  if (scenario.kind != ScenarioKind::kTraining || scenario.plan.scaling != Scaling::kMicro) return;
  for (const Pool& pool : scenario.cluster->pools) {
    const Architecture* architecture = find_architecture(pool.accelerator.architecture);
    if (architecture == nullptr || architecture->micro_scales) continue;  // null: nothing is known of it
    throw input_error(fmt::format(
        "{}: /plan/precision/scaling: no unit of {} ({}) multiplies with a scale for 32 elements: "
        "expected \"block\", \"tensor\" or \"history\", found \"micro\"",
        scenario.file, pool.accelerator.id, architecture->name));
  }
}

}  // namespace

void require_native_scales(const Job& job) {
  require_micro_scales(job.scenario);
  for (const JobPhase& phase : job.phases) require_native_scales(*phase.job);
}

}  // namespace moebius
