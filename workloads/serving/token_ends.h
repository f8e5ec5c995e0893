// Where tokens enter an iteration of serving, and where the next ones leave it.
#pragma once

#include "workloads/serving/plan.h"
#include "workloads/training/layers/layer_writer.h"

namespace moebius {

// Of a batch of the fragment, by its index there: the embedding of its tokens.
TensorId write_entry(LayerWriter& writer, const ServingJob& job, std::int32_t batch);
// The final norm, the head, and the next token of each sequence among those that were generated.
void write_exit(LayerWriter& writer, const ServingJob& job, std::int32_t batch, TensorId x);

// The tokens that a rank generated: [requests, most tokens of one], whole numbers, kRank.
std::uint32_t generated_key();
Tensor generated_tensor(const ServingJob& job);

}  // namespace moebius
