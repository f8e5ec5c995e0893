// An iteration in microbatches that go to the experts and back one after the other.
#pragma once

#include <vector>

#include "workloads/schedule/batch.h"

namespace moebius {

// Whether a prompt may stand in several microbatches: each attends to what those before it left in the cache.
enum class PromptCut : std::uint8_t { kWhole, kAnywhere };

// How many parts a batch can be cut into, at most `wanted`: each has a sequence, or, cut anywhere, a row.
int parts_of(const Batch& batch, int wanted, PromptCut cut);

// Consecutive sequences of about equally many rows, in the order of the batch. `parts` is at most parts_of().
std::vector<BatchPtr> split_batch(const Batch& batch, int parts, PromptCut cut);

}  // namespace moebius
