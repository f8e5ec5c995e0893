// Context-parallel ranks that gather keys: what each computes of a sliding window.
#include <catch2/catch.hpp>

#include "small_job.h"

using namespace moebius;

namespace {

double attention_flops(int cp, int window) {
  TrainingJob job = small_job();
  job.model.attention = AttentionKind::kGqa;
  job.model.head_dim = job.model.kv_heads = 4;
  job.model.sliding_window = window;
  job.workload.sequence_length = 512;
  job.plan.cp = cp;
  job.plan.context = ContextKind::kAllGather;
  Training training(job);
  for (const Submission& submission : all_submissions(training)) {
    if (submission.fragment->phase != Phase::kForward) continue;
    double flops = 0;
    for (const Op& op : submission.fragment->ops)
      if (op.kind == OpKind::kAttention) flops += op_flops(op, *submission.fragment).value;
    return flops;
  }
  return 0;
}

}  // namespace

// To a query's worth of pairs.
TEST_CASE("ranks of a context share the pairs of a window as they do those without one") {
  for (const int window : {0, 32, 100, 256, 400, 512})
    for (const int cp : {2, 4}) {
      INFO("window " << window << ", cp " << cp);
      CHECK(cp * attention_flops(cp, window) == Approx(attention_flops(1, window)).epsilon(0.01));
    }
}
