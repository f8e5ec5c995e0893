// The reverse rules of norms: of rows that stand whole on a rank, and of those whose columns ranks share.
#include <utility>

#include "workloads/training/layers/reverse.h"

namespace moebius {

void Reverse::reverse_norm(const Op& op) {
  const TensorId dy = gradient(out(op, 0));
  if (dy == kNoTensor) return;
  if (op.shape.k == kOfSharedRows) return shared_norms_.push_back({op, dy});
  // A norm of heads sees those of this tensor-parallel member.
  const bool of_heads = input_.model->qk_norm == QkNorm::kPerHead &&
                        input_.model->attention != AttentionKind::kMla &&
                        (op.role == Role::kQNorm || op.role == Role::kKvNorm);
  write_norm_gradient({op, dy}, {}, sees_share_of_tokens(in(op, 0)) || (of_heads && plan().tp > 1));
}

// `means`: of the rows and of their projections, where other ranks have columns of them.
void Reverse::write_norm_gradient(const ReversedNorm& norm, const std::vector<TensorId>& means,
                                  bool sum_over_tensor) {
  const Op& op = norm.op;
  const TensorId dx = fresh_gradient(in(op, 0));
  std::vector<TensorId> outputs{dx};
  if (is_trained(in(op, 1))) outputs.push_back(gradient_buffer(in(op, 1), sum_over_tensor));
  std::vector<TensorId> inputs{norm.dy, value(in(op, 0)), value(in(op, 1))};
  inputs.insert(inputs.end(), means.begin(), means.end());
  emit(like(op, OpKind::kNormGrad), inputs, outputs);
  add_gradient(in(op, 0), dx);
}

// The gradient of a row asks for its projection, mean(dy*x*w), over all ranks that have columns of it: one
// sum for the norms of queries and keys, whose gradients are both known here.
void Reverse::reverse_row_means(const Op& op) {
  const std::vector<ReversedNorm> norms = std::exchange(shared_norms_, {});
  if (norms.empty()) return;
  std::vector<TensorId> of_norms;
  for (auto norm = norms.rbegin(); norm != norms.rend(); ++norm)
    of_norms.insert(of_norms.end(), {norm->dy, value(in(norm->op, 0)), value(in(norm->op, 1))});
  const auto n = static_cast<std::int64_t>(norms.size());
  const TensorId own = builder().transient(op.shape.m, n, DType::kFp32, op.role);
  const TensorId all = builder().transient(op.shape.m, n, DType::kFp32, op.role);
  Op means = like(op, OpKind::kRowMeans);
  means.shape.k = 1;
  emit(means, of_norms, {own});
  emit({.kind = OpKind::kAllReduce,
        .dtype = DType::kFp32,
        .lane = tensor_lane(),
        .role = op.role,
        .group = GroupRole::kTensor,
        .units = static_cast<std::int16_t>(plan().tensor_sms),
        .match = builder().next_match(),
        .shape = {.m = op.shape.m, .n = n},
        .payload = builder().tensor(own).bytes()},
       {own}, {all});
  for (const ReversedNorm& norm : norms) write_norm_gradient(norm, {value(in(norm.op, 2)), all}, false);
}

}  // namespace moebius
