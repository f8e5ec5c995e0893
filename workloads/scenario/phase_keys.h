// Keys of prefill, of decode and of a pool's row: how a phase is spread over ranks, and the plan of an
// instance that follows from them.
#pragma once

#include <string>

#include "workloads/scenario/scenario_parts.h"
#include "workloads/serving/frameworks.h"

namespace moebius {

// `pool`, `attention`, `pp`, `ep` and what goes on at once; tp and ep where they are not given.
struct PhaseDegrees {
  int tp = 0, ep = 0;
};
PhaseKeys read_phase(Section& phase, PhaseDegrees otherwise, const Framework& framework);

// `absorbed_below` of prefill or of a pool's row, where that pool's devices attend. Null: not known.
std::int64_t read_absorbed(Section& phase, const Framework& framework, const Cluster* cluster,
                           const std::string& pool);
// Where it is given.
void check_absorbed(const Model& model, const Place& place);

// The instances of a pool that its devices have room for.
ServicePhase phase_of(const Scenario& scenario, PoolRole role, const PhaseKeys& keys, const Place& place);

}  // namespace moebius
