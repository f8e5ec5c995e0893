#include "workloads/training/layers/layer_writer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/separate_kernels.h"
#include "workloads/schedule/context_part.h"
#include "workloads/training/state/sharding.h"

namespace moebius {

WeightFormat format_of(DType arithmetic) {
  return {arithmetic, element_bytes(arithmetic) < 2 ? arithmetic : DType::kBf16};
}

LayerWriter::LayerWriter(const LoweringInput& input, const StageSpec& stage, ForwardPass& pass)
    : input_(input),
      shard_(stage.shard),
      choice_(stage.recompute.get()),
      pass_(pass),
      dense_(format_of(input.plan->gemm)),
      experts_(dense_) {}

void LayerWriter::begin_block(int layer, bool recompute_all) {
  ++block_;
  builder().layer = static_cast<std::int16_t>(layer);
  recompute_all_ = recompute_all;
}

void LayerWriter::end_recompute() {
  recompute_all_ = false;
}

// Which op group of /plan/recompute/ops an op belongs to; nothing: one that is only computed again with its
// layer.
std::optional<RecomputeOp> recompute_group(OpKind kind, Role role, bool latent) {
  const bool up =
      role == Role::kQB || role == Role::kKvB || (latent && role == Role::kRope) || kind == OpKind::kMlaKeys;
  if (kind == OpKind::kNorm) return RecomputeOp::kNorm;
  if (kind == OpKind::kActivation) return RecomputeOp::kActivation;
  if (kind == OpKind::kAttention) return RecomputeOp::kAttention;
  if (kind == OpKind::kDispatch) return RecomputeOp::kDispatch;
  if (kind == OpKind::kPermute) return RecomputeOp::kPermute;
  if (kind == OpKind::kGemm && role == Role::kExperts) return RecomputeOp::kPermute;  // with a mask
  if (role == Role::kGate || role == Role::kRouter) return RecomputeOp::kGate;
  if (latent && up && kind != OpKind::kSplit) return RecomputeOp::kMlaUp;
  if (kind == OpKind::kQuantise || kind == OpKind::kLargest) return std::nullopt;  // as their original
  if (role == Role::kQkv || role == Role::kQ || role == Role::kQA || role == Role::kKvA ||
      role == Role::kRope)
    return RecomputeOp::kQkv;
  if (role == Role::kExpertGateUp) return RecomputeOp::kExpertUp;
  if (role == Role::kGateUp || role == Role::kSharedGateUp) return RecomputeOp::kMlpUp;
  if (role == Role::kO) return RecomputeOp::kAttentionOut;
  if (role == Role::kDown) return RecomputeOp::kMlpDown;
  return std::nullopt;
}

bool LayerWriter::recomputes(OpKind kind, Role role) const {
  if (recompute_all_) return true;
  const bool of_sum = kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter;
  const bool ends_block = of_sum && (role == Role::kO || role == Role::kDown);
  if (is_communication(kind) && kind != OpKind::kDispatch && !ends_block) return false;
  const auto group = recompute_group(kind, role, model().attention == AttentionKind::kMla);
  if (!group) return false;
  if (choice_ != nullptr) return choice_->ops.count({builder().layer, *group}) > 0;
  return plan().recompute == RecomputePolicy::kSelective &&
         std::find(plan().recompute_ops.begin(), plan().recompute_ops.end(), *group) !=
             plan().recompute_ops.end();
}

std::int32_t LayerWriter::emit(Op op, const std::vector<TensorId>& inputs,
                               const std::vector<TensorId>& outputs, const std::vector<std::int32_t>& after) {
  const std::int32_t index = builder().emit(op, inputs, outputs, after);
  pass_.block_of_op.push_back(block_);
  bool again = recomputes(op.kind, op.role);
  // A quantised copy is made again exactly when its original is.
  if (op.kind == OpKind::kQuantise || op.kind == OpKind::kLargest) {
    for (const std::int32_t earlier : pass_.recomputable) {
      const Op& source = builder().fragment().ops[earlier];
      for (int i = 0; i < source.num_outputs; ++i)
        again = again || builder().fragment().output(source, i) == inputs[0];
    }
  }
  if (again) pass_.recomputable.insert(index);
  return index;
}

// A weight whose shards are cast before they are gathered has a scale that all ranks know.
TensorId LayerWriter::add_weight(Tensor weight) {
  if (shares_scale(weight, plan())) weight.scaling = Scaling::kHistory;
  return builder().add(weight);
}

TensorId LayerWriter::expert_weight(const Linear& linear, int experts) {
  const std::int64_t rows = linear.cut == Cut::kColumns ? linear.out / plan().expert_tp : linear.out;
  const std::int64_t columns = linear.cut == Cut::kRows ? linear.in / plan().expert_tp : linear.in;
  return add_weight({.scope = Scope::kRank,
                     .memory = MemoryKind::kWeights,
                     .dtype = experts_.stored,
                     .role = linear.role,
                     .layer = builder().layer,
                     .key = parameter_key(linear.role, builder().layer, Part::kWeight),
                     .rows = rows,
                     .columns = columns,
                     .first_expert = shard_.expert * experts,
                     .experts = experts,
                     .first_row = linear.cut == Cut::kColumns ? shard_.expert_part * rows : 0,
                     .first_column = linear.cut == Cut::kRows ? shard_.expert_part * columns : 0,
                     .init = 1 / std::sqrt(static_cast<double>(linear.in)),
                     .slots = slots_ ? slots_(builder().layer, shard_.expert) : nullptr});
}

TensorId LayerWriter::norm_weight(Role role, std::int64_t columns) {
  return builder().add({.scope = Scope::kRank,
                        .memory = MemoryKind::kWeights,
                        .role = role,
                        .layer = builder().layer,
                        .key = parameter_key(role, builder().layer, Part::kWeight),
                        .rows = 1,
                        .columns = columns,
                        .tensor_copies = plan().tp,
                        .init = -1});
}

TensorId LayerWriter::gated_norm(TensorId x, TensorId gate, Role role, int heads) {
  const std::int64_t n = columns(x) / heads;
  const TensorId y = builder().transient(rows(x), columns(x), DType::kBf16, role);
  emit({.kind = OpKind::kNorm, .role = role, .shape = {.m = rows(x) * heads, .n = n, .k = 1}},
       {x, norm_weight(role, n), gate}, {y});
  return y;
}

TensorId LayerWriter::gate(TensorId x, TensorId by) {
  Op op{.kind = OpKind::kActivation, .role = builder().tensor(x).role};
  op.shape = {.m = rows(x), .n = columns(x), .k = columns(by) == columns(x) ? 3 : kGateOfRows};
  const TensorId y = builder().transient(rows(x), columns(x), DType::kBf16, op.role);
  emit(op, {x, by}, {y});
  return y;
}

// PyTorch has one kernel for norms with a mean, and composes those without.
int LayerWriter::norm_kernels() const {
  const bool eager = plan().eager_elementwise && !model().layer_norm;
  return eager ? kEagerKernels : plan().separate_norm_grad ? kSeparateKernels : 0;
}

TensorId LayerWriter::norm(TensorId x, Role role, int heads) {
  const std::int64_t n = columns(x) / heads;
  const TensorId y = builder().transient(rows(x), columns(x), DType::kBf16, role);
  Op op{.kind = OpKind::kNorm, .role = role, .shape = {.m = rows(x) * heads, .n = n}};
  op.shape.heads = norm_kernels();
  emit(op, {x, norm_weight(role, n)}, {y});
  return y;
}

TensorId LayerWriter::quantised(TensorId x, DType dtype, bool for_product) {
  const Tensor original = builder().tensor(x);
  if (element_bytes(dtype) >= 2 || original.dtype == dtype) return x;
  const bool both_ways = for_product && builder().scaling != Scaling::kBlock;
  for (const auto& [copy, source] : pass_.quantised_from) {
    const bool same_format = builder().tensor(copy).dtype == dtype;
    if (source == x && same_format && (!both_ways || pass_.columns_of.count(copy) > 0)) return copy;
  }
  const TensorId copy = builder().transient(original.rows, original.columns, dtype, original.role);
  pass_.quantised_from[copy] = x;
  if (both_ways)
    pass_.columns_of[copy] = builder().transient(original.rows, original.columns, dtype, original.role);
  const Fragment& fragment = builder().fragment();
  const Op& last = fragment.ops.back();
  const bool gates = (last.kind == OpKind::kNorm && last.shape.k == 1) ||
                     (last.kind == OpKind::kActivation && last.shape.k >= 3);
  const bool can_fuse = (last.kind == OpKind::kNorm || last.kind == OpKind::kActivation) && !gates;
  // Kernels of experts in 4 bits quantise what they activate.
  const bool of_experts = dtype == DType::kFp4 && original.role == Role::kExpertGateUp;
  if ((plan().fused_quantise || of_experts) && can_fuse && fragment.output(last, 0) == x) {
    builder().extend_last(copy);
    if (both_ways) builder().extend_last_by_columns(pass_.columns_of[copy]);
    return copy;
  }
  Op op{.kind = OpKind::kQuantise,
        .dtype = dtype,
        .role = original.role,
        .route = last.route >= 0 && fragment.output(last, 0) == x ? last.route : -1,
        .shape = {.m = rows(x), .n = columns(x)}};
  std::vector<TensorId> inputs{x}, outputs{copy};
  if (builder().scaling == Scaling::kTensor) inputs.push_back(largest(x, op));
  if (both_ways) outputs.push_back(pass_.columns_of[copy]), op.shape.heads = kBothWays;
  emit(op, inputs, outputs);
  return copy;
}

TensorId LayerWriter::largest(TensorId x, const Op& quantise) {
  Op op = quantise;
  op.kind = OpKind::kLargest;
  op.dtype = DType::kBf16;
  const TensorId number = builder().transient(1, 1, DType::kFp32, op.role);
  emit(op, {x}, {number});
  return number;
}

TensorId LayerWriter::rotary(TensorId x, int heads, int rotated) {
  const TensorId y = builder().transient(rows(x), columns(x), DType::kBf16, Role::kRope);
  emit({.kind = OpKind::kRotary,
        .role = Role::kRope,
        .batch = pass_.batch,
        .match = plan().zigzag() ? kRingStep : 0,
        .shape = {.m = rows(x),
                  .n = columns(x),
                  .k = plan().eager_elementwise ? kEagerKernels : 0,
                  .groups = static_cast<std::int32_t>(workload().micro_batch),
                  .heads = heads,
                  .head_dim = rotated}},
       {x}, {y});
  return y;
}

TensorId LayerWriter::add(TensorId a, TensorId b) {
  const TensorId sum = builder().transient(rows(a), columns(a), DType::kBf16, Role::kResidual);
  emit({.kind = OpKind::kAdd, .role = Role::kResidual, .shape = {.m = rows(a), .n = columns(a)}}, {a, b},
       {sum});
  return sum;
}

// A block whose last product is computed again leaves no stream either: it is added up again.
TensorId LayerWriter::add_block(TensorId stream, TensorId result) {
  const Role role = builder().tensor(result).role;
  const TensorId sum = add_result(stream, result);
  const bool ends_block = role == Role::kO || role == Role::kDown;
  if (ends_block && recomputes(OpKind::kGemm, role))
    pass_.recomputable.insert(static_cast<std::int32_t>(builder().fragment().ops.size()) - 1);
  return sum;
}

TensorId LayerWriter::add_result(TensorId stream, TensorId result) {
  if (workload().dropout == 0) return add(stream, result);
  const std::int64_t m = rows(stream), n = columns(stream);
  const TensorId sum = builder().transient(m, n, DType::kBf16, Role::kResidual);
  const TensorId mask = builder().transient(m, n, DType::kInt8, Role::kResidual);
  emit({.kind = OpKind::kAdd, .role = Role::kResidual, .shape = {.m = m, .n = n, .k = 1}}, {stream, result},
       {sum, mask});
  return sum;
}

TensorId LayerWriter::activation(TensorId x, std::int64_t width, TensorId row_weights) {
  const std::int32_t route = builder().fragment().ops.back().route;
  const TensorId y = builder().transient(rows(x), width, DType::kBf16, builder().tensor(x).role);
  std::vector<TensorId> inputs = {x};
  if (row_weights != kNoTensor) inputs.push_back(row_weights);
  emit({.kind = OpKind::kActivation,
        .role = builder().tensor(x).role,
        .route = route,
        .shape = {.m = rows(x),
                  .n = width,
                  .k = model().gated ? 2 : 1,
                  .heads = plan().eager_elementwise && model().gated ? kEagerKernels : 0}},
       inputs, {y});
  return y;
}

std::vector<TensorId> LayerWriter::split(TensorId x, const std::vector<std::int64_t>& widths, Role role) {
  std::vector<TensorId> parts;
  for (const std::int64_t width : widths)
    parts.push_back(builder().transient(rows(x), width, DType::kBf16, role));
  emit({.kind = OpKind::kSplit, .role = role, .shape = {.m = rows(x), .n = columns(x)}}, {x}, parts);
  return parts;
}

TensorId LayerWriter::collective(OpKind kind, GroupRole group, Lane lane, TensorId x,
                                 std::int64_t result_rows, double rows_of_token,
                                 const std::vector<std::int32_t>& after) {
  const Tensor& operand = builder().tensor(x);
  const TensorId y = builder().transient(result_rows, operand.columns, operand.dtype, operand.role);
  const double whole = rows_of_token * static_cast<double>(std::max(rows(x), result_rows));
  const bool of_tensor = group == GroupRole::kTensor || group == GroupRole::kDenseTensor;
  emit({.kind = kind,
        .dtype = builder().tensor(x).dtype,
        .lane = lane,
        .role = builder().tensor(x).role,
        .group = group,
        .units = static_cast<std::int16_t>(of_tensor ? plan().tensor_sms : 0),
        .match = builder().next_match(),
        .shape = {.m = rows(x), .n = columns(x)},
        .payload = {whole * static_cast<double>(columns(x)) * element_bytes(builder().tensor(x).dtype)}},
       {x}, {y}, after);
  return y;
}

// Megatron-LM's f and g (Shoeybi et al. 2019; Korthikanti et al. 2022 with sequence parallelism): gather rows
// forward and reduce-scatter backward, or nothing forward and all-reduce backward. Of gathered rows only the
// rank's own are kept; the reverse pass gathers them again for the weight gradients.
TensorId LayerWriter::enter_tensor_parallel(TensorId x) {
  if (plan().tp == 1) return x;
  if (plan().sequence_parallel) {
    const TensorId whole = collective(OpKind::kAllGather, GroupRole::kTensor, Lane::kTensorComm, x,
                                      shared_rows_ > 0 ? shared_rows_ : rows(x) * plan().tp);
    if (plan().gather_passes) return in_order(whole);
    pass_.recomputable.insert(static_cast<std::int32_t>(builder().fragment().ops.size()) - 1);
    return whole;
  }
  pass_.partial.insert(x);
  return x;
}

// A pass: parts that lie behind each other, sequence by sequence, or the way back. What it wrote is kept.
TensorId LayerWriter::in_order(TensorId x) {
  const Tensor operand = builder().tensor(x);
  const TensorId y = builder().transient(operand.rows, operand.columns, operand.dtype, operand.role);
  emit({.kind = OpKind::kSplit,
        .dtype = operand.dtype,
        .role = operand.role,
        .shape = {.m = operand.rows, .n = operand.columns}},
       {x}, {y});
  return y;
}

TensorId LayerWriter::leave_tensor_parallel(TensorId x) {
  if (plan().tp == 1) return x;
  if (plan().gather_passes) x = in_order(x);
  const std::int64_t m = rows(x), share = (m + plan().tp - 1) / plan().tp;
  const TensorId sum =
      plan().sequence_parallel
          ? collective(OpKind::kReduceScatter, GroupRole::kTensor, Lane::kTensorComm, x, share)
          : collective(OpKind::kAllReduce, GroupRole::kTensor, Lane::kTensorComm, x, m);
  return leave_with_adapters(sum);
}

// Megatron-Core (moe/shared_experts.py): beside the exchanges the gather is an op on a stream of its own
// (pre_forward_comm), and the product keeps what came; in line it is the product's, as attention's is, and
// comes again in reverse. So it does where passes run in pairs, which that overlap does not go with.
TensorId LayerWriter::enter_shared_experts(TensorId x) {
  if (plan().tp == 1 || !plan().sequence_parallel) return enter_tensor_parallel(x);
  const auto last = [this] { return static_cast<std::int32_t>(builder().fragment().ops.size()) - 1; };
  const bool beside = plan().overlap_dispatch_combine;
  const std::vector<std::int32_t> after = beside ? std::vector<std::int32_t>{} : std::vector{last()};
  const TensorId whole =
      collective(OpKind::kAllGather, GroupRole::kTensor, Lane::kTensorComm, x, rows(x) * plan().tp, 1, after);
  if (plan().gather_passes) return in_order(whole);
  if (!beside || plan().overlap_two_batch) pass_.recomputable.insert(last());
  return whole;
}

// Ranks that share dense MLPs in another number than attention hold different rows, be it of one sequence or
// of several: gathered over the one group, cut again over the other, none needs more than the larger group's
// rows.
TensorId LayerWriter::enter_dense_mlp(TensorId x) {
  if (!plan().mixed_tp()) return enter_tensor_parallel(x);
  if (plan().dense_degree() == 1) return x;
  const TensorId whole = collective(OpKind::kAllGather, GroupRole::kDenseTensor, Lane::kTensorComm, x,
                                    rows(x) * plan().dense_degree());
  pass_.recomputable.insert(static_cast<std::int32_t>(builder().fragment().ops.size()) - 1);
  return whole;
}

TensorId LayerWriter::leave_dense_mlp(TensorId x) {
  if (!plan().mixed_tp()) return leave_tensor_parallel(x);
  if (plan().dense_degree() == 1) return x;
  return collective(OpKind::kReduceScatter, GroupRole::kDenseTensor, Lane::kTensorComm, x,
                    rows(x) / plan().dense_degree());
}

// Ranks that share an expert have dispatched tokens of their own to it, equally many: each gathers them all
// and multiplies by its part of the expert (Megatron-Core's expert tensor parallelism, arXiv 2504.14960).
// What is gathered is gathered again where what was dispatched is dispatched again.
TensorId LayerWriter::enter_experts(TensorId received, double rows_of_token) {
  if (plan().expert_tp == 1) return received;
  const auto ops = [this] { return static_cast<std::int32_t>(builder().fragment().ops.size()); };
  const bool again = recomputes(OpKind::kDispatch, Role::kExperts);
  const TensorId whole = collective(OpKind::kAllGather, GroupRole::kExpertTensor, expert_lane(), received,
                                    rows(received) * plan().expert_tp, rows_of_token);
  if (again) pass_.recomputable.insert(ops() - 1);
  return whole;
}

TensorId LayerWriter::leave_experts(TensorId x, double rows_of_token) {
  if (plan().expert_tp == 1) return x;
  return collective(OpKind::kReduceScatter, GroupRole::kExpertTensor, expert_lane(), x,
                    rows(x) / plan().expert_tp, rows_of_token);
}

TensorId LayerWriter::gather_context(TensorId x) {
  if (plan().cp == 1 || plan().context != ContextKind::kAllGather) return x;
  return collective(OpKind::kAllGather, GroupRole::kContext, Lane::kTensorComm, x, rows(x) * plan().cp);
}

}  // namespace moebius
