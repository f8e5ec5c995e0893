// What a layer sees of a batch that attends in chunks (Llama 4): a token attends to its own block of so many
// positions and to nothing before it. Each sequence becomes as many as it has tokens in blocks, each with the
// pages of its block alone, so that attention over whole sequences and over the cache, its cost and its
// kernels need not know of chunks.
#pragma once

#include "workloads/schedule/batch.h"

namespace moebius {

// The batch itself where no sequence is longer than a chunk, or chunk is 0. Pages must divide chunks. What is
// packed (no pages) is cut alike.
BatchPtr local_batch(const BatchPtr& batch, std::int32_t chunk);

}  // namespace moebius
