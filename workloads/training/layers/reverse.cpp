#include "workloads/training/layers/reverse.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/separate_kernels.h"
#include "workloads/training/state/sharding.h"

namespace moebius {

Reverse::Reverse(const LoweringInput& input, const StageSpec& stage, ForwardPass& forward, BackwardPass& pass,
                 const BackwardOptions& options)
    : input_(input),
      stage_(stage),
      forward_(forward),
      pass_(pass),
      options_(options),
      builder_(&pass.builder),
      waits_(fragment()) {
  producer_.assign(fragment().tensors.size(), -1);
  for (std::size_t i = 0; i < fragment().ops.size(); ++i) {
    const Op& op = fragment().ops[i];
    for (int j = 0; j < op.num_outputs; ++j) producer_[out(op, j)] = static_cast<std::int32_t>(i);
  }
  builder().compute_units = forward_.builder.compute_units;
  find_wanted();
}

// From the last op to the first; the gradients of a block's weights are complete when its first op has been
// passed.
void Reverse::run() {
  const auto num_ops = static_cast<int>(fragment().ops.size());
  take_handed_gradient();
  for (int i = num_ops - 1; i >= 0; --i) {
    const Op& op = fragment().ops[i];
    builder().layer = op.layer;
    block_ = forward_.block_of_op[i];
    compute_group_again(i);
    if (done_.count(i) == 0 && leads_to_trained(op)) reverse(op);
    const bool block_ends = i == 0 || forward_.block_of_op[i - 1] != forward_.block_of_op[i];
    if (!block_ends || options_.split) continue;
    flush_weights();
    if (options_.after_block) options_.after_block(builder(), pass_.parameters);
  }
  hand_gradient_on();
  if (options_.split && options_.after_inputs) options_.after_inputs(builder(), pass_.parameters);
  if (options_.split) write_weights();
}

// Where the next stage stands on the same rank, its backward pass leaves the gradient in memory.
void Reverse::take_handed_gradient() {
  if (stage_.slice.has_head || stage_.next != GroupRole::kNone || !wanted_[forward_.sent]) return;
  const Tensor& x = fragment().tensors[forward_.sent];
  add_gradient(forward_.sent, builder().add({.scope = Scope::kMicrobatch,
                                             .memory = MemoryKind::kActivations,
                                             .role = x.role,
                                             .layer = x.layer,
                                             .key = handed_key(stage_.stage + 1, Phase::kBackward),
                                             .rows = x.rows,
                                             .columns = x.columns}));
}

void Reverse::hand_gradient_on() {
  if (stage_.slice.has_embedding || stage_.previous != GroupRole::kNone || !wanted_[forward_.received])
    return;
  const TensorId dx = gradient(forward_.received);
  Tensor& tensor = builder().tensor(dx);
  CHECK(tensor.scope == Scope::kFragment, std::string("the gradient of a stage's input is not its own"));
  tensor.scope = Scope::kMicrobatch;
  tensor.memory = MemoryKind::kActivations;
  tensor.key = handed_key(stage_.stage, Phase::kBackward);
}

// The second part of a split pass: the weights in the order in which one part would have written them.
void Reverse::write_weights() {
  values_of_inputs_ = std::move(values_);
  values_.clear();
  waits_.none_written();
  routes_.clear();
  quantised_.clear();
  builder_ = &*pass_.weights;
  builder().compute_units = forward_.builder.compute_units;
  for (std::size_t i = 0; i < deferred_.size(); ++i) {
    builder().layer = deferred_[i].op.layer;
    write_weight_gradient(deferred_[i]);
    const bool block_ends = i + 1 == deferred_.size() || deferred_[i + 1].block != deferred_[i].block;
    if (block_ends && options_.after_block) options_.after_block(builder(), pass_.parameters);
  }
  deferred_.clear();
}

// A tensor of the first part in the second: kept from one to the other.
TensorId Reverse::left(TensorId backward_tensor) {
  Tensor& tensor = pass_.builder.tensor(backward_tensor);
  if (tensor.scope == Scope::kFragment) {
    tensor.scope = Scope::kMicrobatch;
    tensor.memory = MemoryKind::kActivations;
    tensor.key = left_key(stage_.chunk, backward_tensor);
  } else if (tensor.scope == Scope::kMicrobatch) {
    tensor.kept = true;
  }
  Tensor here = tensor;
  here.kept = false;
  return builder().add(here);
}

// Full recompute runs the forward pass of a group of layers again, all of it, when its reverse pass begins
// (Chen et al. 2016; Megatron-LM's and PyTorch's checkpoints).
void Reverse::compute_group_again(std::int32_t op_index) {
  for (const auto& [first, last] : forward_.again) {
    if (op_index != last - 1 || !leads_to_trained(fragment().ops[op_index])) continue;
    for (std::int32_t i = first; i < end_again(first, last); ++i) {
      if (values_.count(out(fragment().ops[i], 0)) == 0) compute_again(i);
    }
  }
}

std::int32_t Reverse::emit(Op op, const std::vector<TensorId>& inputs, const std::vector<TensorId>& outputs,
                           const std::vector<std::int32_t>& after) {
  if (op.route >= 0) {
    const auto [place, added] = routes_.try_emplace(op.route, 0);
    if (added) place->second = builder().add_route(fragment().routes[op.route]);
    op.route = place->second;
  }
  if (op.batch >= 0) op.batch = builder().add_batch(fragment().batches[op.batch]);
  return builder().emit(op, inputs, outputs, after);
}

Op Reverse::like(const Op& op, OpKind kind) {
  return {.kind = kind,
          .dtype = op.dtype,
          .lane = op.lane,
          .role = op.role,
          .route = op.route,
          .batch = op.batch,
          .scale = op.scale,
          .shape = op.shape};
}

void Reverse::add_gradient(TensorId forward_tensor, TensorId gradient, bool whole) {
  const bool beside_sum = whole && forward_.partial.count(forward_tensor) > 0;
  (beside_sum ? whole_gradients_ : gradients_)[forward_tensor].push_back(gradient);
}

TensorId Reverse::fresh_gradient(TensorId forward_tensor) {
  const Tensor& tensor = fragment().tensors[forward_tensor];
  const DType dtype = element_bytes(tensor.dtype) < 2 ? DType::kBf16 : tensor.dtype;
  return builder().transient(tensor.rows, tensor.columns, dtype, tensor.role);
}

TensorId Reverse::add_up(const std::vector<TensorId>& contributions, Role role) {
  TensorId sum = contributions.front();
  for (std::size_t i = 1; i < contributions.size(); ++i) {
    const std::int64_t m = builder().tensor(sum).rows, n = builder().tensor(sum).columns;
    const TensorId next = builder().transient(m, n, DType::kBf16, builder().tensor(sum).role);
    // The stream's gradient is that of the bias of the block before.
    const bool biased = role == Role::kResidual && trains_biases();
    emit({.kind = OpKind::kAdd, .role = role, .shape = {.m = m, .n = n, .heads = biased ? kSumsBias : 0}},
         {sum, contributions[i]}, {next});
    sum = next;
  }
  return sum;
}

TensorId Reverse::sum_over_tensor(TensorId partial, TensorId forward_tensor) {
  const TensorId whole = fresh_gradient(forward_tensor);
  const Tensor& tensor = builder().tensor(whole);
  Op op{.kind = OpKind::kAllReduce,
        .lane = tensor_lane(),
        .role = tensor.role,
        .group = GroupRole::kTensor,
        .units = static_cast<std::int16_t>(plan().tensor_sms),
        .match = builder().next_match(),
        .shape = {.m = tensor.rows, .n = tensor.columns}};
  op.payload = tensor.bytes();
  emit(op, {partial}, {whole});
  flush_weights();
  return whole;
}

// The contributions are added up as late as possible, so that none waits for another's communication.
TensorId Reverse::gradient(TensorId forward_tensor) {
  const auto found = gradients_.find(forward_tensor);
  if (found == gradients_.end()) return kNoTensor;
  const Role role = fragment().tensors[forward_tensor].role;
  TensorId sum = add_up(found->second, role);
  if (forward_.partial.count(forward_tensor) > 0) sum = sum_over_tensor(sum, forward_tensor);
  std::vector<TensorId> all{sum};
  if (const auto whole = whole_gradients_.find(forward_tensor); whole != whole_gradients_.end())
    all.insert(all.end(), whole->second.begin(), whole->second.end());
  sum = add_up(all, role);
  found->second = {sum};
  return sum;
}

// With sequence parallelism, what lies between the tensor-parallel regions works on this rank's rows only.
bool Reverse::sees_share_of_tokens(TensorId forward_operand) const {
  return plan().sequence_parallel && plan().tp > 1 &&
         fragment().tensors[forward_operand].rows == tokens_per_rank(input_);
}

// Whether stages before this one have anything trained: of adapters the first layers may have none.
bool Reverse::trains_before() const {
  const Adapters& adapters = input_.workload->adapters;
  for (int layer = 0; adapters.any() && layer < stage_.slice.first_layer; ++layer)
    if (has_adapters(*input_.model, layer, adapters)) return true;
  return !adapters.any();
}

// What trained parameters lead to, and what came from stages before that have some.
void Reverse::find_wanted() {
  wanted_.assign(fragment().tensors.size(), false);
  const bool before = trains_before();
  if (forward_.received != kNoTensor) wanted_[forward_.received] = before;
  for (const Op& op : fragment().ops) {
    bool leads = before && op.kind == OpKind::kRecv;
    for (int i = 0; i < op.num_inputs; ++i) leads = leads || wanted_[in(op, i)] || is_trained(in(op, i));
    for (int i = 0; leads && i < op.num_outputs; ++i) wanted_[out(op, i)] = true;
  }
}

bool Reverse::is_trained(TensorId forward_weight) const {
  const Tensor& weight = fragment().tensors[forward_weight];
  const bool stays = weight.scope == Scope::kRank && weight.memory == MemoryKind::kWeights;
  return stays && (!input_.workload->adapters.any() || is_adapter(weight));
}

// What all of the tensor-parallel group hold and multiply alike. Of A beside a matrix that is cut by columns
// each rank's outputs say a part.
bool Reverse::is_whole(TensorId forward_weight) const {
  const bool parts = forward_.partial_weights.count(forward_weight) > 0;
  return fragment().tensors[forward_weight].tensor_copies > 1 && !parts;
}

// Integer inputs, weights and what comes from frozen ones only need none.
bool Reverse::needs_gradient(TensorId forward_tensor) const {
  const Tensor& tensor = fragment().tensors[forward_tensor];
  return wanted_[forward_tensor] && tensor.dtype != DType::kInt32 && tensor.scope != Scope::kRank;
}

// Below the first adapter of a model nothing runs in reverse.
bool Reverse::leads_to_trained(const Op& op) const {
  if (op.num_outputs == 0) return wanted_[in(op, 0)];  // a message
  bool leads = false;
  for (int i = 0; i < op.num_outputs; ++i) leads = leads || wanted_[out(op, i)];
  return leads;
}

TensorId Reverse::value(TensorId forward_tensor) {
  const auto found = values_.find(forward_tensor);
  if (found != values_.end()) return found->second;
  const Tensor& tensor = fragment().tensors[forward_tensor];
  const std::int32_t producer = producer_[forward_tensor];
  if (tensor.scope == Scope::kRank) return values_[forward_tensor] = builder().add(tensor);
  const auto before = values_of_inputs_.find(forward_tensor);
  if (before != values_of_inputs_.end()) return values_[forward_tensor] = left(before->second);
  if (producer >= 0 && forward_.recomputable.count(producer) > 0) {
    compute_again(producer);
    return values_.at(forward_tensor);
  }
  return values_[forward_tensor] = kept(forward_tensor);
}

TensorId Reverse::kept(TensorId forward_tensor) {
  Tensor& tensor = forward_.builder.tensor(forward_tensor);
  if (tensor.scope == Scope::kFragment) {
    tensor.scope = Scope::kMicrobatch;
    tensor.memory = MemoryKind::kActivations;
    tensor.key = microbatch_key(stage_.chunk, forward_tensor);
  }
  Tensor here = tensor;
  here.kept = false;
  // What was loaded ends with the forward pass, unless this reads it too.
  const auto& read = forward_.read;
  tensor.kept = tensor.kept || std::find(read.begin(), read.end(), forward_tensor) != read.end();
  return builder().add(here);
}

void Reverse::compute_again(std::int32_t op_index) {
  Op op = fragment().ops[op_index];
  std::vector<TensorId> inputs, outputs;
  for (int i = 0; i < op.num_inputs; ++i) inputs.push_back(value(in(op, i)));
  for (int i = 0; i < op.num_outputs; ++i) {
    const Tensor& tensor = fragment().tensors[out(op, i)];
    outputs.push_back(builder().transient(tensor.rows, tensor.columns, tensor.dtype, tensor.role));
    values_[out(op, i)] = outputs.back();
  }
  if (is_communication(op.kind)) {
    op.match = builder().next_match();
    // Little may wait for the sums of a layer, for the last one nothing; in frameworks all does.
    if (op.lane == Lane::kTensorComm) op.lane = plan().recompute_whole ? Lane::kCompute : tensor_lane();
  }
  const std::int16_t layer = builder().layer;
  builder().layer = op.layer;
  waits_.written(op_index, emit(op, inputs, outputs, waits_.places(op_index)));
  builder().layer = layer;
}

TensorId Reverse::quantised(TensorId x, OpKind how, std::int32_t route, bool for_product) {
  const auto found = quantised_.find({x, how});
  if (found != quantised_.end()) return found->second;
  const Tensor& tensor = builder().tensor(x);
  if (how == OpKind::kQuantise && tensor.dtype == DType::kFp8) return x;
  const std::int64_t m = tensor.rows, n = tensor.columns;
  const Role role = tensor.role;
  const TensorId copy = builder().transient(m, n, DType::kFp8, role);
  Op op{.kind = how, .dtype = DType::kFp8, .role = role, .route = route, .shape = {.m = m, .n = n}};
  std::vector<TensorId> inputs{x}, outputs{copy};
  if (builder().scaling == Scaling::kTensor) {
    inputs.push_back(builder().transient(1, 1, DType::kFp32, role));
    Op largest = op;
    largest.kind = OpKind::kLargest;
    largest.dtype = DType::kBf16;
    emit(largest, {x}, {inputs.back()});
  }
  if (for_product && plan().quantises_both_ways() && how == OpKind::kQuantise) {
    outputs.push_back(builder().transient(m, n, DType::kFp8, role));
    columns_of_[x] = outputs.back();
    op.shape.heads = kBothWays;
  }
  emit(op, inputs, outputs);
  return quantised_[{x, how}] = copy;
}

// A gradient with scales along the tokens: made with its other copy, or for itself.
TensorId Reverse::by_columns(TensorId dy, std::int32_t route) {
  const auto made = columns_of_.find(dy);
  if (made != columns_of_.end()) return in_weights() ? left(made->second) : made->second;
  return quantised(in_weights() ? left(dy) : dy, OpKind::kTransposeQuantise, route);
}

TensorId Reverse::gradient_buffer(TensorId forward_weight, bool sum_over_tensor) {
  const Tensor& weight = fragment().tensors[forward_weight];
  // Its replicas are all who hold the same part of a dense MLP, whatever rows they saw.
  const bool dense = plan().mixed_tp() && (weight.role == Role::kGateUp || weight.role == Role::kDown);
  if (known_parameters_.insert(weight.key).second) {
    pass_.parameters.push_back({weight, weight.experts > 0, dense, sum_over_tensor && !dense});
  }
  return builder().add(gradient_of(weight, plan()));
}

void Reverse::flush_weights() {
  if (options_.split) return;
  const Phase phase = builder().phase;
  builder().phase = Phase::kWeight;
  for (const DeferredWeight& deferred : deferred_) {
    builder().layer = deferred.op.layer;
    write_weight_gradient(deferred);
  }
  builder().phase = phase;
  deferred_.clear();
}

// dW[n,k] += dy[m,n]^T x[m,k]; in 8 bits both operands are cast anew along the tokens. A bias gets the sums
// of dy's columns from the same pass over it, as the epilogues of libraries give them, or from one behind it.
void Reverse::write_weight_gradient(const DeferredWeight& deferred) {
  const Op& forward = deferred.op;
  const auto dy = [&] { return in_weights() ? left(deferred.dy) : deferred.dy; };
  if (forward.kind == OpKind::kEmbedding) {
    emit(like(forward, OpKind::kEmbeddingGrad), {value(deferred.x), dy()},
         {gradient_buffer(deferred.weight, false)});
    return;
  }
  const bool grouped = forward.kind == OpKind::kGroupedGemm;
  const bool low = forward.dtype == DType::kFp8;
  const TensorId x = value(deferred.x);
  Op op = like(forward, grouped ? OpKind::kGroupedGemmWgrad : OpKind::kGemmWgrad);
  op.shape.m = forward.shape.n;
  op.shape.n = forward.shape.k;
  op.shape.k = forward.shape.m;
  const TensorId left_operand = low ? by_columns(deferred.dy, forward.route) : dy();
  const TensorId right =
      low && !deferred.by_columns ? quantised(x, OpKind::kTransposeQuantise, forward.route) : x;
  const bool partial = forward_.partial_weights.count(deferred.weight) > 0;
  const bool share = !grouped && (partial || sees_share_of_tokens(deferred.x));
  const TensorId buffer = gradient_buffer(deferred.weight, share);
  const bool biased = !grouped && forward.num_inputs > 2;
  if (biased) op.shape.heads = plan().biases == BiasKernels::kFused ? kWithBias : kWithBiasApart;
  const TensorId of_bias = biased ? gradient_buffer(in(forward, 2), share) : kNoTensor;
  const auto results = [&](TensorId weight) {
    return biased ? std::vector<TensorId>{weight, of_bias} : std::vector<TensorId>{weight};
  };
  // Gradients that are summed in each microbatch are its own until then: there is nothing to add to.
  if (grouped || !plan().separate_accumulation || (plan().zero >= 2 && !accumulates_whole(plan(), false))) {
    emit(op, {left_operand, right}, results(buffer));
    return;
  }
  op.shape.groups = 1;
  const TensorId fresh = builder().transient(op.shape.m, op.shape.n, DType::kBf16, op.role);
  emit(op, {left_operand, right}, results(fresh));
  emit({.kind = OpKind::kAdd,
        .dtype = plan().accumulation == Accumulation::kWholeBf16 ? DType::kBf16 : plan().gradients,
        .role = op.role,
        .shape = {.m = op.shape.m, .n = op.shape.n}},
       {buffer, fresh}, {buffer});
}

}  // namespace moebius
