// A forward beside a backward pass: what runs beside what, in the order of DeepSeek's profile of such a pair
// (deepseek-ai/profile-data, train.json): in every layer the communication stream carries combine(B),
// dispatch(F), dispatch(B), combine(F), and the compute stream runs attention(F), experts(B) with their
// weights, experts(F), attention(B).
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/training/small_job.h"

using namespace moebius;

namespace {

TrainingJob pair_job() {
  TrainingJob job = small_job();
  job.model.first_dense = 0;
  job.plan.overlap_two_batch = true;
  job.workload.global_batch = 16;  // four microbatches of four replicas
  return job;
}

FragmentPtr first_pair(const TrainingJob& job) {
  Training training(job);
  for (const Submission& submission : all_submissions(training))
    if (submission.second_microbatch >= 0) return submission.fragment;
  return nullptr;
}

// The backward pass of a dispatch is called dispatch(B) and is a combine.
std::string exchange_of(const Op& op) {
  const bool back = op.phase != Phase::kForward;
  if (op.kind == OpKind::kDispatch) return back ? "combine(B)" : "dispatch(F)";
  if (op.kind == OpKind::kCombine) return back ? "dispatch(B)" : "combine(F)";
  return "";
}

std::string product_of(const Op& op) {
  if (op.kind == OpKind::kAttention) return "attention(F)";
  if (op.kind == OpKind::kAttentionGrad) return "attention(B)";
  if (op.role != Role::kExpertGateUp) return "";
  if (op.kind == OpKind::kGroupedGemm) return "experts(F)";
  if (op.kind == OpKind::kGroupedGemmDgrad) return "experts(B)";
  if (op.kind == OpKind::kGroupedGemmWgrad) return "experts(W)";
  return "";
}

template <class Name>
std::vector<std::string> named(const Fragment& fragment, const Name& name) {
  std::vector<std::string> names;
  for (const Op& op : fragment.ops)
    if (const std::string found = name(op); !found.empty()) names.push_back(found);
  return names;
}

std::vector<std::string> repeated(const std::vector<std::string>& layer, int layers) {
  std::vector<std::string> all;
  for (int i = 0; i < layers; ++i) all.insert(all.end(), layer.begin(), layer.end());
  return all;
}

}  // namespace

TEST_CASE("exchanges of a pair travel in the order of the profile") {
  const TrainingJob job = pair_job();
  const FragmentPtr pair = first_pair(job);
  REQUIRE(pair != nullptr);
  CHECK(named(*pair, exchange_of) ==
        repeated({"combine(B)", "dispatch(F)", "dispatch(B)", "combine(F)"}, job.model.layers));
}

TEST_CASE("products of a pair run in the order of the profile") {
  const TrainingJob job = pair_job();
  const FragmentPtr pair = first_pair(job);
  REQUIRE(pair != nullptr);
  CHECK(
      named(*pair, product_of) ==
      repeated({"attention(F)", "experts(B)", "experts(W)", "experts(F)", "attention(B)"}, job.model.layers));
}

// With uneven experts one microbatch's passes stand for all when memory is counted: also for the first of a
// step, which gathers, and never beside the reverse pass of its own stage.
TEST_CASE("a forward pass that gathers what the update left is beside no reverse pass of its stage") {
  for (const bool each : {false, true}) {
    TrainingJob job = pair_job();
    job.plan.zero = 1;
    job.plan.overlap_weights = true;
    job.workload.popularity.kind = PopularityKind::kZipf;
    job.workload.popularity.per_microbatch = each;
    Training training(job);
    CHECK(training.memory({1e9}).peak().value > 0);
    for (const Submission& submission : all_submissions(training)) {
      if (submission.second_microbatch < 0) continue;
      for (const Op& op : submission.fragment->ops) CHECK(op.kind != OpKind::kAllGather);
    }
  }
}

TEST_CASE("tokens of experts that stand on every rank have no lane beside products") {
  TrainingJob job = pair_job();
  job.plan.ep = 1;
  job.plan.pp = 2;
  job.plan.overlap_two_batch = false;
  job.plan.schedule = PipelineKind::kDualPipeV;
  job.plan.chunks = 2;
  std::vector<std::vector<std::uint64_t>> hashes;
  for (const bool beside : {false, true}) {
    job.plan.overlap_dispatch_combine = beside;
    Training training(job);
    hashes.emplace_back();
    for (const Submission& submission : all_submissions(training))
      hashes.back().push_back(submission.fragment->hash);
  }
  CHECK(hashes[0] == hashes[1]);
}
