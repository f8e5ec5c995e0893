// Ops of serving that are a known kernel under another name: what they cost is what that kernel costs.
// - kPagedAttention: kAttention over keys and values that stand in pages. A page is a few kilobytes at least,
//   so that the memory gives them at the rate of one piece.
//   Where a query chooses its keys (k > 0), each is a sequence of its own over so many.
// - kIndexScores: kAttention with one head of keys and no values; of heads side by side, as many rows of a
//   tile. Writing the scores is not priced, reading them is (kTopKeys).
// - kAbsorbQueries, kAbsorbedValues: a product for each head (DeepSeek-V2, section 2.1.2), as of `heads`
//   experts with m rows each. Shape::heads says that they are heads: equal products side by side, without
//   routing, of which tables of experts know nothing and those of batched products do. The rotary columns
//   that the first passes on are a tenth of its result, and not counted.
// - kRotary in place: kRotary of the columns that it rotates. kMlaKeys whose values stay: that of no values.
#pragma once

#include "workloads/cost/cost_source.h"

namespace moebius {

// The query itself for kinds that are not of these.
CostQuery priced_as(const CostQuery& query);

}  // namespace moebius
