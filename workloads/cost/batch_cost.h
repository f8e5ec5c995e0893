// What attention over the sequences of a batch costs, each with keys and queries of its own.
#pragma once

#include "workloads/cost/cost_source.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

// Whether the work of an op depends on the lengths of its batch.
bool depends_on_lengths(const Op& op);

// `query` is that of the op's mean sequence. Sequences with equally many queries run as one kernel over their
// different keys (CostQuery::rows). Those of different prompts are priced set by set, one after the other in
// one launch: tiles of a later set could fill cores that an earlier one leaves, which is not counted.
// Packed sequences of training (a batch without a cache) share one launch. The delta rule has one launch for
// sequences with a few tokens and one for all others, whatever their lengths.
Cost batch_cost(const CostSource& source, const CostQuery& query, const Fragment& fragment, const Op& op);

}  // namespace moebius
