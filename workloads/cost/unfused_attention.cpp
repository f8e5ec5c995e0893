#include "workloads/cost/unfused_attention.h"

#include <algorithm>

#include "workloads/cost/kernel_sum.h"

namespace moebius {

namespace {

class UnfusedKernels {
 public:
  UnfusedKernels(const CostSource& source, const CostQuery& query) : source_(source), query_(query) {}

  // x[queries,k] W[n,k] for each head of each sequence: kAbsorbedValues has one for each head.
  void product(std::int64_t n, std::int64_t k) {
    const std::int32_t sequences = std::max(1, shape().groups);
    add({OpKind::kAbsorbedValues,
         {.m = shape().m / sequences,
          .n = k,
          .heads = sequences * shape().heads,
          .v_dim = static_cast<std::int32_t>(n)}});
  }

  // One pass over the scores that moves so many matrices of them.
  void pass(int matrices) {
    const Shape scores{.m = shape().m * shape().heads, .n = shape().kv};
    if (matrices == 3) return add({OpKind::kAdd, scores});
    add({OpKind::kSplit, scores});
  }

  // In, mask, out: the bytes of kAdd with k = 2.
  void dropout() {
    if (shape().k != 2) return;
    add({OpKind::kAdd, {.m = shape().m * shape().heads, .n = shape().kv, .k = 2}});
  }

  Cost sum() const { return sum_.sum(); }
  const Shape& shape() const { return query_.shape; }

 private:
  void add(CostQuery kernel) {
    kernel.dtype = query_.dtype;
    kernel.cores = query_.cores;
    sum_.add(source_.cost(kernel));
  }

  const CostSource& source_;
  const CostQuery& query_;
  KernelSum sum_;
};

}  // namespace

bool is_unfused_attention(const CostQuery& query) {
  return is_attention(query.kind) && query.shape.k > 0;
}

Cost unfused_attention_cost(const CostSource& source, const CostQuery& query) {
  UnfusedKernels kernels(source, query);
  const Shape& s = query.shape;
  if (query.kind == OpKind::kAttention) {
    kernels.product(s.kv, s.head_dim);  // S = q k'
    kernels.pass(2);                    // P = softmax(S), scaled and masked
    kernels.dropout();
    kernels.product(s.v_dim, s.kv);  // o = P v
  } else {
    const std::int64_t queries = s.m / std::max(1, s.groups);
    kernels.product(s.kv, s.v_dim);     // dP = do v'
    kernels.product(s.v_dim, queries);  // dv = P' do
    kernels.dropout();
    kernels.pass(3);                       // dS from dP and P
    kernels.product(s.head_dim, s.kv);     // dq = dS k
    kernels.product(s.head_dim, queries);  // dk = dS' q
  }
  return kernels.sum();
}

}  // namespace moebius
