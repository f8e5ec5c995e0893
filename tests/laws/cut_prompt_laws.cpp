// Laws of prompts that the ranks of a replica cut among themselves.
#include <catch2/catch.hpp>

#include "../unit/training/small_job.h"
#include "models/layer_math.h"
#include "sim/sim_run.h"
#include "workloads/perform/perform.h"
#include "workloads/schedule/work.h"
#include "workloads/serving/cut_prompts.h"
#include "workloads/serving/lower.h"

using namespace moebius;

namespace {

constexpr int kTokens = 256;

// One prompt on `cp` ranks, its experts in the same ranks.
ServingJob job_of(int cp) {
  ServingJob job;
  job.model = small_model();
  job.model.experts.routed = 0;
  job.model.first_dense = job.model.layers;
  job.plan.dp = job.plan.cp = cp;
  job.plan.fold = false;
  job.plan.token_budget = kTokens;
  job.workload = {.requests = 1, .input = {kTokens, kTokens}, .output = {1, 1}, .popularity = {}};
  return job;
}

BatchPtr prompt(std::int32_t past) {
  Batch batch{64, {{0, past + kTokens, past, kTokens, {}}}};
  for (std::int32_t page = 0; page * 64 < past + kTokens; ++page) batch.sequences[0].pages.push_back(page);
  return std::make_shared<const Batch>(std::move(batch));
}

struct Work {
  double attention = 0, products = 0;  // FLOP of all ranks
  double blown_up = 0;                 // FLOP of latents mapped to heads, of all ranks
  std::int64_t gathered = 0;           // rows of the first gather
  double sent = 0;                     // bytes of results that change ranks, of all ranks
};

Work work_of(int cp, std::int32_t past, AttentionKind attention,
             CutAttention attend_by = CutAttention::kTokens) {
  ServingJob job = job_of(cp);
  job.model.attention = attention;
  job.model.head_dim = 16;
  const ServingShape shape(job);
  Work work;
  const BatchPtr whole = prompt(past), attended = attend_by == CutAttention::kHeads ? whole : nullptr;
  for (const BatchPtr& batch : cut_prompts({whole}, cp, attend_by)) {
    const FragmentPtr fragment =
        lower_iteration(shape, {.batch = batch, .shard = {}, .route = {}, .whole = attended});
    for (const Op& op : fragment->ops) {
      const double flops = op_flops(op, *fragment).value;
      const bool attends = op.kind == OpKind::kAttention || op.kind == OpKind::kPagedAttention;
      if (attends) work.attention += flops;
      if (op.kind == OpKind::kGemm && op.role != Role::kKvB && op.role != Role::kHead) work.products += flops;
      if (op.kind == OpKind::kGemm && op.role == Role::kKvB) work.blown_up += flops;
      if (op.kind == OpKind::kAllToAll) work.sent += op.payload.value;
      if (op.kind == OpKind::kAllGather && work.gathered == 0)
        work.gathered = fragment->tensors[fragment->output(op, 0)].rows;
    }
  }
  return work;
}

double first_token(const std::string& cp) {
  const Library library("");
  Changes changes;
  changes.sets = {"/plan/prefill/attention/cp=" + cp, "/plan/prefill/attention/dp=1",
                  "/plan/prefill/ep/degree=" + cp, "/workload/trace/requests=1"};
  Job job =
      read_job(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/serve-cut-prompts.json", changes, library);
  const Outcome outcome =
      perform(job,
              [](const Job& given, const Layout& layout, Recorder& recorder) {
                return start_simulator(given, layout, recorder,
                                       {.data = "", .options = {NetworkDetail::kAlphaBeta, Driver::kPlain}});
              },
              {.wants_spans = false, .quiet = true});
  return outcome.report.serving->ttft.mean;
}

}  // namespace

// Maps of latents to heads are the exception: every rank needs the keys of all.
TEST_CASE("ranks that cut a prompt compute together what one computes alone") {
  for (const AttentionKind kind : {AttentionKind::kGqa, AttentionKind::kMla}) {
    for (const int past : {0, 1024}) {
      INFO("attention " << static_cast<int>(kind) << " behind " << past);
      const Work whole = work_of(1, past, kind);
      for (const int cp : {2, 4, 8}) {
        INFO(cp << " ranks");
        const Work cut = work_of(cp, past, kind);
        CHECK(cut.products == Approx(whole.products));
        if (kind == AttentionKind::kGqa || past == 0) CHECK(cut.attention == Approx(whole.attention));
        CHECK(cut.gathered == past + kTokens);
      }
    }
  }
}

// Nothing is computed twice; what changes ranks is the results of attention, once, in BF16.
TEST_CASE("ranks that attend by heads compute together what one computes alone") {
  for (const int past : {0, 1024}) {
    const Work whole = work_of(1, past, AttentionKind::kMla);
    const Model model = job_of(1).model;
    for (const int cp : {2, 4}) {
      INFO(cp << " ranks behind " << past);
      const Work cut = work_of(cp, past, AttentionKind::kMla, CutAttention::kHeads);
      CHECK(cut.products == Approx(whole.products));
      CHECK(cut.attention == Approx(whole.attention));
      CHECK(cut.blown_up == Approx(whole.blown_up));
      CHECK(cut.gathered == kTokens);
      CHECK(cut.sent == Approx(2.0 * model.layers * kTokens * model.heads * model.mla.v_dim));
    }
  }
}

TEST_CASE("a long prompt comes to its first token nearly as many times sooner as ranks cut it") {
  const double one = first_token("1"), eight = first_token("8");
  CHECK(one / eight > 5);
  CHECK(one / eight < 8);
}
