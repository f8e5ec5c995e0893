// A layer whose attention and MLP read the same stream and are added to it at once.
#include "workloads/training/layers/layer_writer.h"

namespace moebius {
namespace {

bool has_one_norm(const LayerWriter& writer) {
  return writer.model().parallel_block == ParallelBlock::kOneNorm;
}

// Rows for the MLP: what attention has read, or the stream through a norm of its own, which comes when it is
// read (GPT-NeoX's, Hugging Face's modeling_gpt_neox.py).
TensorId write_rows_of_mlp(LayerWriter& writer, TensorId x, TensorId normed, TensorId whole) {
  if (!has_one_norm(writer)) return writer.enter_dense_mlp(writer.norm(x, Role::kMlpNorm));
  return writer.plan().mixed_tp() ? writer.enter_dense_mlp(normed) : whole;
}

}  // namespace

// A rank's parts of both sums are one part of their sum (gpt-neox, megatron/model/transformer.py:
// gpt_j_residual; vLLM, models/falcon.py). In reverse the gradient of the one norm is one sum, too: its parts
// from attention and MLP are added up before it. Attention and MLP stay two blocks, so that weight gradients
// of the MLP are written before attention's reverse begins, and attention's beside the sum.
TensorId write_parallel_block(LayerWriter& writer, TensorId x, const AttentionOfRows& attention) {
  const Model& model = writer.model();
  const bool cut_alike = !writer.plan().mixed_tp();
  const TensorId normed = writer.norm(x, Role::kAttentionNorm);
  const TensorId whole = writer.enter_tensor_parallel(normed);
  TensorId attended =
      writer.linear(attention(writer, whole), {Role::kO, model.hidden, model.value_dim(), Cut::kRows});
  if (!cut_alike) attended = writer.leave_tensor_parallel(attended);
  writer.next_block();
  const TensorId rows = write_rows_of_mlp(writer, x, normed, whole);
  const Cut cut = writer.plan().dense_degree() > 1 ? Cut::kColumns : Cut::kNone;
  TensorId result = write_gated(writer, rows, model.dense_width, Role::kGateUp, Role::kDown, cut);
  if (!cut_alike) result = writer.leave_dense_mlp(result);
  result = writer.add(attended, result);
  if (cut_alike) result = writer.leave_tensor_parallel(result);
  writer.end_recompute();
  return writer.add_block(x, result);
}

}  // namespace moebius
