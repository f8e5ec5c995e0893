// The reverse rule of each op kind. Operands and results are as in models/op_kind.h.
#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/separate_kernels.h"
#include "workloads/schedule/context_part.h"
#include "workloads/training/layers/reverse.h"

namespace moebius {

void Reverse::reverse(const Op& op) {
  switch (op.kind) {
    case OpKind::kGemm:
    case OpKind::kGroupedGemm:
      return multiplies_mask(op) ? reverse_masked(op) : reverse_gemm(op);
    case OpKind::kNorm:
      return reverse_norm(op);
    case OpKind::kRowMeans:
      return reverse_row_means(op);
    case OpKind::kAttention:
      return reverse_attention(op);
    case OpKind::kActivation:
      return reverse_activation(op);
    case OpKind::kGate:
      return reverse_gate(op);
    case OpKind::kPermute:
      return reverse_permute(op);
    case OpKind::kUnpermute:
      return reverse_unpermute(op);
    case OpKind::kEmbedding:
      return reverse_embedding(op);
    case OpKind::kMlaKeys:
      return reverse_mla_keys(op);
    case OpKind::kSplit:
      return writes_masks(op) ? reverse_masks(op) : reverse_split(op);
    case OpKind::kConcat:
      return reverse_concat(op);
    case OpKind::kRotary:
      return reverse_rotary(op);
    case OpKind::kDispatch:
    case OpKind::kCombine:
      return reverse_routed_exchange(op);
    case OpKind::kAllGather:
    case OpKind::kReduceScatter:
    case OpKind::kAllReduce:
      return reverse_collective(op);
    case OpKind::kAllToAll:
      return reverse_exchange(op);
    case OpKind::kSend:
      return receive_gradient(op);
    case OpKind::kRecv:
      return send_gradient(op);
    case OpKind::kAdd:
      return reverse_add(op);
    case OpKind::kLargest:   // a number that a pass after it scales by
    case OpKind::kQuantise:  // straight through
      if (const TensorId dy = gradient(out(op, 0)); dy != kNoTensor) add_gradient(in(op, 0), dy);
      return;
    case OpKind::kCrossEntropy:
      return add_gradient(in(op, 0), kept(out(op, 1)));
    case OpKind::kInput:
    case OpKind::kCrossEntropyStats:
      return;
    case OpKind::kEmbeddingGrad:
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
    case OpKind::kNormGrad:
    case OpKind::kRotaryGrad:
    case OpKind::kAttentionGrad:
    case OpKind::kActivationGrad:
    case OpKind::kGateGrad:
    case OpKind::kPermuteGrad:
    case OpKind::kUnpermuteGrad:
    case OpKind::kMlaKeysGrad:
    case OpKind::kTransposeQuantise:
    case OpKind::kAdam:
    case OpKind::kSumSquares:
    case OpKind::kCacheAppend:
    case OpKind::kPagedAttention:
    case OpKind::kIndexScores:
    case OpKind::kTopKeys:
    case OpKind::kAbsorbQueries:
    case OpKind::kAbsorbedValues:
    case OpKind::kConvolution:
    case OpKind::kDeltaRule:
    case OpKind::kLastRows:
    case OpKind::kGreedySample:
    case OpKind::kNextToken:
    case OpKind::kPlaceExperts:
    case OpKind::kBroadcast:
    case OpKind::kCopyToHost:
    case OpKind::kCopyFromHost:
      CHECK(false, fmt::format("{} in a forward pass", to_string(op.kind)));
  }
}

// dx[m,k] = dy[m,n] W[n,k] now, dW later; of a frozen W none, for which nothing is kept or gathered again.
void Reverse::reverse_gemm(const Op& op) {
  const TensorId dy = gradient(out(op, 0));
  CHECK(dy != kNoTensor, fmt::format("no gradient for {}", to_string(op.role)));
  const bool grouped = op.kind == OpKind::kGroupedGemm;
  const TensorId operand = in(op, 0);
  const auto copy = forward_.quantised_from.find(operand);
  const TensorId original = copy == forward_.quantised_from.end() ? operand : copy->second;
  const std::int32_t producer = producer_[original];
  const bool again = producer >= 0 && forward_.recomputable.count(producer) > 0;
  const bool trained = is_trained(in(op, 1));
  // Rows that are gathered again for dW travel beside the product that gives dx.
  if (trained && again && is_communication(fragment().ops[producer].kind) && !options_.split) value(original);
  if (needs_gradient(original)) {
    Op dgrad = like(op, grouped ? OpKind::kGroupedGemmDgrad : OpKind::kGemmDgrad);
    dgrad.shape.n = op.shape.k;
    dgrad.shape.k = op.shape.n;
    if (!grouped) dgrad.shape.heads = 0;  // a bias passes on what it gets
    const TensorId left = op.dtype == DType::kFp8 ? quantised(dy, OpKind::kQuantise, op.route, trained) : dy;
    const TensorId dx = fresh_gradient(original);
    emit(dgrad, {left, value(in(op, 1))}, {dx});
    add_gradient(original, dx, is_whole(in(op, 1)));
  }
  if (!trained) return;
  // The copy with scales along the tokens, where the operand was quantised both ways; else the 8-bit copy is
  // what was kept, unless the original is computed again anyway.
  const auto columns = forward_.columns_of.find(operand);
  const bool both = columns != forward_.columns_of.end();
  deferred_.push_back({op, dy, both ? columns->second : again ? original : operand, in(op, 1), block_, both});
}

// Where ops [first, last) that run again end. A checkpoint that stops early does so when it has all that the
// reverse pass reads: of the end of a dense layer nothing, neither of the sum with the stream nor of the last
// product, whose operand was kept before it ran. Rows of experts are weighed, for which theirs are read, and
// so are those that a mask weighs, but not what they add up to.
std::int32_t Reverse::end_again(std::int32_t first, std::int32_t last) const {
  TensorId read = kNoTensor;  // by the reverse rule of a product that was left out
  for (; plan().recompute_stops && last > first; --last) {
    const Op& op = fragment().ops[last - 1];
    const bool sums = op.kind == OpKind::kAllReduce || op.kind == OpKind::kReduceScatter ||
                      (op.kind == OpKind::kAdd && op.shape.k == 0);
    const bool masked = multiplies_mask(op);
    const bool ends = op.role == Role::kDown && (op.kind == OpKind::kGemm || op.kind == OpKind::kSplit);
    if ((!sums && !ends && !masked) || out(op, 0) == read) break;
    if (op.kind == OpKind::kGemm) read = in(op, masked ? 1 : 0);
  }
  return last;
}

// Both operands get the gradient of the sum; of one that was dropped out, what the mask leaves of it.
void Reverse::reverse_add(const Op& op) {
  if (op.shape.k == kMergeAttention) return reverse_ring(op);
  const TensorId dy = gradient(out(op, 0));
  if (dy == kNoTensor) return;
  // As frameworks do it, a layer runs again to its end, before anything else of its reverse pass.
  const std::int32_t ended = producer_[in(op, 1)];
  if (plan().recompute_whole && !plan().recompute_stops && op.role == Role::kResidual && ended >= 0 &&
      forward_.recomputable.count(ended) > 0)
    value(in(op, 1));
  add_gradient(in(op, 0), dy);
  if (op.shape.k == 0) return add_gradient(in(op, 1), dy);
  if (!needs_gradient(in(op, 1))) return;
  const TensorId left = fresh_gradient(in(op, 1));
  Op masked = like(op, OpKind::kAdd);
  masked.shape.k = 2;
  emit(masked, {dy, value(out(op, 1))}, {left});
  add_gradient(in(op, 1), left);
}

void Reverse::reverse_attention(const Op& op) {
  std::vector<TensorId> inputs = {gradient(out(op, 0))}, outputs;
  for (int i = 0; i < 3; ++i) inputs.push_back(value(in(op, i)));
  for (int i = 0; i < op.num_outputs; ++i) inputs.push_back(value(out(op, i)));
  for (int i = 0; i < 3; ++i) outputs.push_back(fresh_gradient(in(op, i)));
  Op back = like(op, OpKind::kAttentionGrad);
  back.match = op.match;
  emit(back, inputs, outputs);
  for (int i = 0; i < 3; ++i) add_gradient(in(op, i), outputs[i]);
}

void Reverse::reverse_activation(const Op& op) {
  std::vector<TensorId> inputs = {gradient(out(op, 0))}, outputs;
  for (int i = 0; i < op.num_inputs; ++i) inputs.push_back(value(in(op, i)));
  for (int i = 0; i < op.num_inputs; ++i) outputs.push_back(fresh_gradient(in(op, i)));
  Op back = like(op, OpKind::kActivationGrad);
  if (op.role == Role::kGateUp && back.shape.heads == 0 && trains_biases()) back.shape.heads = kSumsBias;
  emit(back, inputs, outputs);
  for (int i = 0; i < op.num_inputs; ++i) add_gradient(in(op, i), outputs[i]);
}

void Reverse::reverse_gate(const Op& op) {
  const TensorId dlogits = fresh_gradient(in(op, 0));
  emit(like(op, OpKind::kGateGrad), {gradient(out(op, 0)), value(in(op, 0))}, {dlogits});
  add_gradient(in(op, 0), dlogits);
}

// Rows, and their weights where they have some.
void Reverse::reverse_permute(const Op& op) {
  std::vector<TensorId> inputs, outputs;
  for (int i = 0; i < op.num_outputs; ++i) inputs.push_back(gradient(out(op, i)));
  for (int i = 0; i < op.num_inputs; ++i) outputs.push_back(fresh_gradient(in(op, i)));
  Op back = like(op, OpKind::kPermuteGrad);
  back.dtype = DType::kBf16;
  emit(back, inputs, outputs);
  for (int i = 0; i < op.num_inputs; ++i) add_gradient(in(op, i), outputs[i]);
}

void Reverse::reverse_unpermute(const Op& op) {
  const TensorId dtokens = gradient(out(op, 0));
  const TensorId drows = fresh_gradient(in(op, 0));
  Op back = like(op, OpKind::kUnpermuteGrad);
  travels_like(drows, dtokens);  // copies stay in the bits they came in
  back.dtype = builder().tensor(drows).dtype;
  emit(back, {dtokens}, {drows});
  add_gradient(in(op, 0), drows);
}

void Reverse::reverse_embedding(const Op& op) {
  const TensorId dx = gradient(out(op, 0));
  if (options_.split) return deferred_.push_back({op, dx, in(op, 0), in(op, 1), block_});
  const Phase phase = builder().phase;
  builder().phase = Phase::kWeight;
  emit(like(op, OpKind::kEmbeddingGrad), {value(in(op, 0)), dx}, {gradient_buffer(in(op, 1), false)});
  builder().phase = phase;
}

void Reverse::reverse_mla_keys(const Op& op) {
  const TensorId dkv = fresh_gradient(in(op, 0)), drope = fresh_gradient(in(op, 1));
  emit(like(op, OpKind::kMlaKeysGrad), {gradient(out(op, 0)), gradient(out(op, 1))}, {dkv, drope});
  add_gradient(in(op, 0), dkv);
  add_gradient(in(op, 1), drope);
}

void Reverse::reverse_split(const Op& op) {
  std::vector<TensorId> parts;
  for (int i = 0; i < op.num_outputs; ++i) parts.push_back(gradient(out(op, i)));
  const TensorId dx = fresh_gradient(in(op, 0));
  emit(like(op, OpKind::kConcat), parts, {dx});
  add_gradient(in(op, 0), dx);
}

void Reverse::reverse_concat(const Op& op) {
  std::vector<TensorId> parts;
  for (int i = 0; i < op.num_inputs; ++i) parts.push_back(fresh_gradient(in(op, i)));
  emit(like(op, OpKind::kSplit), {gradient(out(op, 0))}, parts);
  for (int i = 0; i < op.num_inputs; ++i) add_gradient(in(op, i), parts[i]);
}

void Reverse::reverse_rotary(const Op& op) {
  const TensorId dx = fresh_gradient(in(op, 0));
  Op back = like(op, OpKind::kRotaryGrad);
  back.match = op.match;
  emit(back, {gradient(out(op, 0))}, {dx});
  add_gradient(in(op, 0), dx);
}

void Reverse::travels_like(TensorId x, TensorId original) {
  builder().tensor(x).dtype = builder().tensor(original).dtype;
  builder().tensor(x).scaling = builder().tensor(original).scaling;
}

// Dispatch and combine are each other's transpose. What comes back travels in the precision of the direction:
// expert inputs and their like as dispatch, sums as combine. Weight gradients are written while it travels.
void Reverse::reverse_routed_exchange(const Op& op) {
  const bool from_dispatch = op.kind == OpKind::kDispatch;
  Op back = like(op, from_dispatch ? OpKind::kCombine : OpKind::kDispatch);
  back.dtype = from_dispatch ? plan().combine : plan().dispatch;
  back.group = op.group;
  back.algorithm = op.algorithm;
  back.units = op.units;
  back.match = builder().next_match();
  // Gradients of as many weights come back with a row as went with it.
  const double weights = op.payload.value - static_cast<double>(op.shape.n) * element_bytes(op.dtype);
  back.payload = {op.shape.n * element_bytes(back.dtype) + (from_dispatch ? weights : 0.0)};
  std::vector<TensorId> inputs, outputs;
  for (int i = 0; i < op.num_outputs; ++i) inputs.push_back(gradient(out(op, i)));
  if (back.dtype == DType::kFp8) inputs[0] = quantised(inputs[0], OpKind::kQuantise, -1, false);
  for (int i = 0; i < op.num_inputs; ++i) outputs.push_back(fresh_gradient(in(op, i)));
  if (!from_dispatch) travels_like(outputs[0], inputs[0]);
  emit(back, inputs, outputs);
  for (int i = 0; i < op.num_inputs; ++i) add_gradient(in(op, i), outputs[i]);
  if (from_dispatch) flush_weights();
}

// Gather and reduce-scatter are each other's transpose; the sum of a row-cut product passes its gradient on
// as it is. Weight gradients are written while sums over the tensor-parallel group travel.
void Reverse::reverse_collective(const Op& op) {
  const TensorId dy = gradient(out(op, 0));
  if (dy == kNoTensor) return;
  const bool of_message = op.role == Role::kPipeline;  // of whose gradient a share is sent back
  if (op.kind == OpKind::kAllReduce || of_message) return add_gradient(in(op, 0), dy);
  const TensorId dx = fresh_gradient(in(op, 0));
  // What was dispatched back is gathered as it came.
  if (op.group == GroupRole::kExpertTensor && op.kind == OpKind::kReduceScatter) travels_like(dx, dy);
  Op back = like(op, op.kind == OpKind::kAllGather ? OpKind::kReduceScatter : OpKind::kAllGather);
  back.dtype = builder().tensor(dx).dtype;
  back.group = op.group;
  back.match = builder().next_match();
  back.shape.m = builder().tensor(dy).rows;
  back.lane = back.group == GroupRole::kTensor ? tensor_lane() : back.lane;
  back.units = op.units;
  back.payload = op.payload * (element_bytes(back.dtype) / element_bytes(op.dtype));
  emit(back, {dy}, {dx});
  add_gradient(in(op, 0), dx);
  const bool tensor = back.group == GroupRole::kTensor || back.group == GroupRole::kDenseTensor ||
                      back.group == GroupRole::kExpertTensor;
  if (back.kind == OpKind::kReduceScatter && tensor) flush_weights();
}

void Reverse::receive_gradient(const Op& op) {
  const TensorId dy = fresh_gradient(in(op, 0));
  const bool cut = plan().message_parts() > 1;
  const TensorId part = cut ? builder().transient(op.shape.m, op.shape.n, DType::kBf16, op.role) : dy;
  Op back = like(op, OpKind::kRecv);
  back.lane = Lane::kRecvBackward;
  back.group = op.group;
  back.match = stage_match(StageMatch::kBackward, stage_.stage / plan().pp);
  back.payload = op.payload;
  back.shape = {.m = op.shape.m, .n = op.shape.n};
  emit(back, {}, {part});
  if (cut) gather_message(part, dy);
  add_gradient(in(op, 0), dy);
}

// What the tensor-parallel ranks received, each its share of the rows.
void Reverse::gather_message(TensorId part, TensorId whole) {
  const Tensor &mine = builder().tensor(part), &all = builder().tensor(whole);
  emit({.kind = OpKind::kAllGather,
        .lane = tensor_lane(),
        .role = Role::kPipeline,
        .group = GroupRole::kTensor,
        .match = builder().next_match(),
        .shape = {.m = mine.rows, .n = mine.columns},
        .payload = all.bytes()},
       {part}, {whole});
}

void Reverse::send_gradient(const Op& op) {
  Op back = like(op, OpKind::kSend);
  back.lane = Lane::kSendBackward;
  back.group = op.group;
  back.match = stage_match(StageMatch::kBackward, (stage_.stage - 1) / plan().pp);
  back.payload = op.payload;
  cut_message(back, plan(), stage_.shard.tensor);
  emit(back, {gradient(out(op, 0))}, {});
}

// Experts' biases are told with their products; adapters train none.
bool Reverse::trains_biases() const {
  return input_.model->biases == Biases::kAll && input_.model->experts.routed == 0 &&
         !input_.workload->adapters.any();
}

}  // namespace moebius
