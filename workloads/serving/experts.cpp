#include "workloads/serving/experts.h"

#include <algorithm>

namespace moebius {
namespace {

class ReplicatedMoe {
 public:
  ReplicatedMoe(LayerWriter& writer, const RoutePtr& route, int member)
      : w_(writer),
        model_(writer.model()),
        route_(writer.builder().add_route(route)),
        experts_(route->experts_per_rank()),
        rows_(std::max(1, member < 0 ? route->max_rows_of_rank() : route->rows_of_rank(member))) {}

  // Of `longest` rows of each of the ranks that share experts, its own among them.
  TensorId write_gathered(TensorId x, std::int64_t longest) {
    const TensorId normed = w_.norm(x, Role::kMlpNorm);
    const DType travels = w_.plan().dispatch;
    TensorId tokens, weights;
    if (travels == DType::kFp4) {  // which the router does not read
      weights = gather(write_gate(w_, normed, route_), longest);
      tokens = gather(w_.quantised(normed, travels), longest);
    } else {
      tokens = gather(normed, longest);
      weights = write_gate(w_, tokens, route_);
    }
    TensorId result = scatter(experts(tokens, weights), w_.rows(x), longest);
    if (model_.experts.shared_width > 0)
      result = w_.add(result, write_shared_experts(w_, normed, Cut::kNone));
    return w_.add_block(x, result);
  }

  TensorId write(TensorId x) {
    const TensorId normed = w_.norm(x, Role::kMlpNorm);
    TensorId part = experts(normed, write_gate(w_, normed, route_));
    if (model_.experts.shared_width > 0) part = w_.add(part, shared(normed));
    return w_.add_block(x, w_.leave_tensor_parallel(part));
  }

 private:
  // Those that share each expert are neighbours, and those that have others as many ranks apart: the rows of
  // all follow each other by rank.
  TensorId gather(TensorId x, std::int64_t longest) {
    const TrainingPlan& plan = w_.plan();
    const std::int64_t part = longest * plan.expert_tp;
    x = w_.collective(OpKind::kAllGather, GroupRole::kExpertTensor, w_.expert_lane(), x, part);
    if (plan.ep == 1) return x;
    return w_.collective(OpKind::kAllGather, GroupRole::kExpert, w_.expert_lane(), x, part * plan.ep);
  }

  TensorId scatter(TensorId x, std::int64_t own, std::int64_t longest) {
    const TrainingPlan& plan = w_.plan();
    if (plan.ep > 1)
      x = w_.collective(OpKind::kReduceScatter, GroupRole::kExpert, w_.expert_lane(), x,
                        longest * plan.expert_tp);
    return w_.collective(OpKind::kReduceScatter, GroupRole::kExpertTensor, w_.expert_lane(), x, own);
  }

  TensorId transient(std::int64_t rows, std::int64_t columns, DType dtype, Role role) {
    return w_.builder().transient(rows, columns, dtype, role);
  }

  TensorId grouped(TensorId x, const Linear& linear) {
    const TensorId operand = w_.quantised(x, w_.expert_format().arithmetic);
    const TensorId w = w_.expert_weight(linear, experts_);
    const std::int64_t out = w_.rows(w), in = w_.columns(w);
    const TensorId y = transient(rows_, out, DType::kBf16, linear.role);
    w_.emit({.kind = OpKind::kGroupedGemm,
             .dtype = w_.expert_format().arithmetic,
             .role = linear.role,
             .route = route_,
             .shape = {.m = rows_, .n = out, .k = in, .groups = experts_}},
            {operand, w}, {y});
    return y;
  }

  // Tokens are quantised, not their copies: engines' kernels of experts read the rows of tokens by expert
  // (SGLang's and vLLM's fused_moe: moe_kernel_quantize_input before the products; DeepGEMM's and CUTLASS'
  // copy what is quantised), as the rows do that their tables are fitted to (workloads/cost/expert_ops.h).
  // Dense products beside them quantise for themselves.
  TensorId low(TensorId tokens) {
    const DType format = w_.expert_format().arithmetic;
    const bool is_low = element_bytes(format) >= 2 || w_.builder().tensor(tokens).dtype == format;
    const bool by_blocks = w_.builder().scaling == Scaling::kBlock;
    if (is_low || !by_blocks || w_.plan().fused_quantise) return w_.quantised(tokens, format);
    const TensorId copy = transient(w_.rows(tokens), model_.hidden, format, Role::kExperts);
    w_.emit({.kind = OpKind::kQuantise,
             .dtype = format,
             .role = Role::kExperts,
             .shape = {.m = w_.rows(tokens), .n = model_.hidden}},
            {tokens}, {copy});
    return copy;
  }

  TensorId experts(TensorId tokens, TensorId weights) {
    const TensorId x = low(tokens);
    const std::int64_t h = model_.hidden;
    const DType dtype = w_.builder().tensor(x).dtype;
    const TensorId copies = transient(rows_, h, dtype, Role::kExperts);
    const TensorId row_weights = transient(rows_, 1, DType::kFp32, Role::kExperts);
    w_.emit({.kind = OpKind::kPermute,
             .dtype = dtype,
             .role = Role::kExperts,
             .route = route_,
             .shape = {.m = rows_, .n = h, .k = model_.experts.active}},
            {x, weights}, {copies, row_weights});
    const ExpertLinears linears = expert_linears(w_);
    const TensorId up = grouped(copies, linears.up);
    const TensorId active = w_.activation(up, model_.experts.width / w_.plan().expert_tp, row_weights);
    const TensorId down = grouped(active, linears.down);
    const TensorId sums = transient(w_.rows(x), h, DType::kBf16, Role::kExperts);
    w_.emit({.kind = OpKind::kUnpermute,
             .role = Role::kExperts,
             .route = route_,
             .shape = {.m = rows_, .n = h, .k = w_.rows(x)}},
            {down}, {sums});
    return sums;
  }

  // Cut by columns over the tensor-parallel ranks, so that it joins the same sum.
  TensorId shared(TensorId x) {
    return write_shared_experts(w_, x, w_.plan().tp > 1 ? Cut::kColumns : Cut::kNone);
  }

  LayerWriter& w_;
  const Model& model_;
  std::int32_t route_;
  int experts_;
  std::int64_t rows_;
};

}  // namespace

TensorId write_replicated_moe(LayerWriter& writer, TensorId x, const RoutePtr& route, int member) {
  return ReplicatedMoe(writer, route, member).write(x);
}

TensorId write_gathered_moe(LayerWriter& writer, TensorId x, const RoutePtr& route, int member,
                            std::int64_t longest) {
  return ReplicatedMoe(writer, route, member).write_gathered(x, longest);
}

}  // namespace moebius
