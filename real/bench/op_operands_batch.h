// The operands of ops of serving: sequences of equal length, one page after the other.
#pragma once

#include "real/bench/op_operands.h"

namespace moebius {

// Of kCacheAppend and the kinds after it. Appended rows are one block, the last tokens of one sequence;
// sequences that attend have shape.kv tokens each; next tokens are the first ones of m requests.
OpOperands operands_of_batch(const CostQuery& query);

}  // namespace moebius
