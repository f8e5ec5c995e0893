// Where tokens enter an iteration of serving, and where the next ones leave it.
#pragma once

#include "workloads/serving/plan.h"
#include "workloads/training/layers/layer_writer.h"

namespace moebius {

// What a stage of a pipeline hands on of a token: the hidden state, and beside it the sum that fused norms
// add to (vLLM and SGLang: models' IntermediateTensors; TensorRT-LLM: PPCommNCCL of both).
inline int rows_handed_on(const ServingPlan& plan) {
  return plan.fused ? 2 : 1;
}
// Each of the ranks that share a replica gets its part from the one that has the same part in the stage
// before, and they gather all (vLLM's send_tensor_dict with all_gather_group). Returns the hidden state.
TensorId write_handed_on(LayerWriter& writer, const ServingPlan& plan, std::int64_t rows);

// Of a batch of the fragment, by its index there: the embedding of its tokens.
TensorId write_entry(LayerWriter& writer, const ServingJob& job, std::int32_t batch);
// The final norm, the head, and the next token of each sequence among those that were generated.
void write_exit(LayerWriter& writer, const ServingJob& job, std::int32_t batch, TensorId x);

// The tokens that a rank generated: [requests, most tokens of one], whole numbers, kRank.
std::uint32_t generated_key();
Tensor generated_tensor(const ServingJob& job);

}  // namespace moebius
