// The reverse of attention over a ring, and of an exchange of heads.
#include <algorithm>

#include "hw/error.h"
#include "workloads/schedule/context_part.h"
#include "workloads/training/layers/reverse.h"

namespace moebius {

void Reverse::reverse_exchange(const Op& op) {
  const TensorId dy = gradient(out(op, 0));
  const TensorId dx = fresh_gradient(in(op, 0));
  Op back = like(op, OpKind::kAllToAll);
  back.group = op.group;
  back.match = builder().next_match();
  back.shape.m = builder().tensor(dy).rows;
  back.shape.n = builder().tensor(dy).columns;
  back.shape.k = op.shape.k == kHeadsOut ? kHeadsBack : kHeadsOut;
  back.payload = op.payload;
  emit(back, {dy}, {dx});
  add_gradient(in(op, 0), dx);
}

// Tensors to the next member, all in one call.
std::vector<TensorId> Reverse::shift(const Op& like_op, const std::vector<TensorId>& x) {
  std::vector<TensorId> y;
  Op op = like(like_op, OpKind::kAllToAll);
  op.group = like_op.group;
  op.match = builder().next_match();
  for (const TensorId id : x) {
    const Tensor tensor = builder().tensor(id);
    op.payload += tensor.bytes();
    y.push_back(builder().transient(tensor.rows, tensor.columns, tensor.dtype, tensor.role));
  }
  emit(op, x, y);
  return y;
}

// A step's block, unless nobody needs it any more, and the sums that travel with it.
void Reverse::send_on(const Op& like_op, bool with_block, std::vector<TensorId>& block,
                      std::vector<TensorId>& sums) {
  const std::size_t of_block = with_block ? block.size() : 0;
  std::vector<TensorId> sent(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(of_block));
  sent.insert(sent.end(), sums.begin(), sums.end());
  const std::vector<TensorId> come = shift(like_op, sent);
  const auto after_block = come.begin() + static_cast<std::ptrdiff_t>(of_block);
  std::copy(come.begin(), after_block, block.begin());
  sums.assign(after_block, come.end());
}

std::vector<TensorId> Reverse::sums(const std::vector<TensorId>& a, const std::vector<TensorId>& b) {
  std::vector<TensorId> y;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Tensor tensor = builder().tensor(a[i]);
    y.push_back(builder().transient(tensor.rows, tensor.columns, tensor.dtype, tensor.role));
    emit({.kind = OpKind::kAdd, .role = tensor.role, .shape = {.m = tensor.rows, .n = tensor.columns}},
         {a[i], b[i]}, {y.back()});
  }
  return y;
}

// All steps at once, where the walk meets the last op of the ring: keys and values go round again, and with
// each block the sums of its gradients, one step behind and one hop further, home to who holds it. Both go in
// one call beside the step's attention (Transformer Engine's p2p): a second one, that comes when the first
// has ended, would find no multiprocessor until the attention has. Every step takes the final result and its
// lse, from which the probabilities follow.
void Reverse::reverse_ring(const Op& merged) {
  std::vector<const Op*> steps;
  const Op* op = &merged;
  for (; steps.empty() || ring_step(*steps.back()) > 0; --op) {
    if (op->kind == OpKind::kAttention) steps.push_back(op);
    done_.insert(static_cast<std::int32_t>(op - fragment().ops.data()));
  }
  // Before the first attention its block was sent on.
  const Op& sent_on = *op;
  done_.insert(static_cast<std::int32_t>(op - fragment().ops.data()));
  CHECK(sent_on.kind == OpKind::kAllToAll && sent_on.shape.k == kRingShift,
        std::string("a ring begins with a shift"));
  const Op& first = *steps.back();
  const TensorId d_o = gradient(out(merged, 0)), q = value(in(first, 0));
  const TensorId o = value(out(merged, 0)), lse = value(out(merged, 1));
  std::vector<TensorId> block{value(in(first, 1)), value(in(first, 2))}, travelling;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const std::vector<TensorId> here = block;
    send_on(sent_on, step + 1 < steps.size(), block, travelling);
    Op back = like(first, OpKind::kAttentionGrad);
    back.match = kRingStep + static_cast<std::uint32_t>(step);
    const std::vector<TensorId> grads{fresh_gradient(in(first, 0)), fresh_gradient(in(first, 1)),
                                      fresh_gradient(in(first, 2))};
    emit(back, {d_o, q, here[0], here[1], o, lse}, grads);
    add_gradient(in(first, 0), grads[0]);
    const std::vector<TensorId> of_block{grads[1], grads[2]};
    travelling = step == 0 ? of_block : sums(travelling, of_block);
  }
  travelling = shift(sent_on, travelling);
  add_gradient(in(first, 1), travelling[0]);
  add_gradient(in(first, 2), travelling[1]);
}

}  // namespace moebius
