// Keys of a serving phase that say what goes on at once: two half batches, and the cores that move tokens
// between experts meanwhile.
#pragma once

#include "workloads/scenario/scenario.h"

namespace moebius {

// Of "prefill" or "decode"; `experts` is its "ep".
void read_overlap(Section& phase, Section& experts, PhaseKeys& keys);

// Into the plan of a phase, which has its degrees.
void set_overlap(const PhaseKeys& keys, PhaseOverlap& overlap);

// Of the keys of prefill or decode, which stand at `phase`. Needs the degrees that the plan came out with.
void check_overlap(const PhaseKeys& keys, bool decodes, const ServingPlan& plan, const Place& phase);

}  // namespace moebius
