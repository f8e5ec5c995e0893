// Norms of queries and keys that span all heads, of which a tensor-parallel rank has some.
#include "tests/unit/serving/expert_sharing.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/lower.h"

#include "tests/catch.h"

namespace moebius {
namespace {

// Four heads of queries, two of keys.
ServingJob job_of(int tp, QkNorm norm) {
  ServingJob job = expert_sharing_job(tp);
  job.model.attention = AttentionKind::kGqa;
  job.model.heads = 4;
  job.model.kv_heads = 2;
  job.model.head_dim = 16;
  job.model.experts = {};
  job.model.dense_width = 32;
  job.model.first_dense = 0;
  job.model.qk_norm = norm;
  job.plan.tp = tp;
  return job;
}

FragmentPtr iteration_of(const ServingJob& job) {
  const ServingShape shape(job);
  return lower_iteration(shape, {whole_prompt(8), {}, {}});
}

int count(const Fragment& fragment, OpKind kind) {
  int ops = 0;
  for (const Op& op : fragment.ops) ops += op.kind == kind;
  return ops;
}

TEST_CASE("a norm of all heads is one message of two numbers a row and layer, beside one rank none") {
  for (const int tp : {1, 2, 4}) {
    const ServingJob job = job_of(tp, QkNorm::kPerLayer);
    const FragmentPtr without = iteration_of(job_of(tp, QkNorm::kPerHead)), with = iteration_of(job);
    const int layers = tp > 1 ? job.model.layers : 0;
    CHECK(count(*with, OpKind::kRowMeans) == layers);
    CHECK(count(*with, OpKind::kAllReduce) == count(*without, OpKind::kAllReduce) + layers);
    CHECK(count(*with, OpKind::kNorm) == count(*without, OpKind::kNorm));
    for (const Op& op : with->ops) {
      if (op.kind == OpKind::kRowMeans) CHECK(op.scale == 1.0f / static_cast<float>(tp));
      if (op.kind != OpKind::kAllReduce || op.role != Role::kQNorm) continue;
      CHECK(op.dtype == DType::kFp32);
      CHECK(op.payload.value == 8 * 2 * 4);
      const Op& sums = with->ops[with->dependencies[op.first_dependency]];
      CHECK(sums.kind == OpKind::kRowMeans);
      CHECK(sums.shape.n == (4 + std::max(2, tp)) / tp * 16);
    }
  }
}

// Of four ranks two keep the same head of keys, and the same part of its norm's weight.
TEST_CASE("weights of a norm of all heads are those of the rank's heads") {
  for (const int tp : {1, 2, 4}) {
    const FragmentPtr fragment = iteration_of(job_of(tp, QkNorm::kPerLayer));
    int weights = 0;
    for (const Tensor& tensor : fragment->tensors) {
      if (tensor.memory != MemoryKind::kWeights) continue;
      if (tensor.role == Role::kQNorm) {
        ++weights;
        CHECK(tensor.columns == 4 / tp * 16);
        CHECK(tensor.tensor_copies == 1);
      } else if (tensor.role == Role::kKvNorm) {
        ++weights;
        CHECK(tensor.columns == std::max(1, 2 / tp) * 16);
        CHECK(tensor.tensor_copies == (tp == 4 ? 2 : 1));
      }
    }
    CHECK(weights == 2 * job_of(tp, QkNorm::kPerLayer).model.layers);
  }
}

}  // namespace
}  // namespace moebius
