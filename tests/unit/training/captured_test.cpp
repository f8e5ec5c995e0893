// Which ops of a stage's passes are captured in graphs.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "small_job.h"

using namespace moebius;

namespace {

TrainingJob captured_job(std::vector<GraphModule> modules) {
  TrainingJob job = small_job();
  job.plan.launch = LaunchMode::kEager;
  job.plan.captured = std::move(modules);
  return job;
}

const std::vector<GraphModule> kAllButExperts{GraphModule::kAttention, GraphModule::kMlp,
                                              GraphModule::kMoeRouter, GraphModule::kMoePreprocess};

// The first fragment of a phase that submissions are of.
FragmentPtr pass_of_phase(const TrainingJob& job, Phase phase) {
  Training training(job);
  for (const Submission& submission : all_submissions(training))
    if (submission.fragment->phase == phase) return submission.fragment;
  return nullptr;
}

bool is_captured(const Fragment& fragment, std::size_t op) {
  return fragment.graph_of(op) >= 0;
}

// Graphs that begin in the fragment.
int graphs(const Fragment& fragment) {
  int count = 0;
  for (std::size_t i = 0; i < fragment.captured.size(); ++i)
    count += fragment.graph_of(i) == static_cast<std::int32_t>(i);
  return count;
}

bool of_experts(const Op& op) {
  return op.role == Role::kExperts || op.role == Role::kExpertGateUp || op.role == Role::kExpertDown;
}

// Roles of ops that a fragment launches one by one, in layers; the head counts as of the last one.
std::set<std::string> eager_roles(const Fragment& fragment) {
  std::set<std::string> roles;
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    const Op& op = fragment.ops[i];
    if (op.layer >= 0 && op.phase != Phase::kGradients && !op.fused && !is_captured(fragment, i))
      roles.emplace(to_string(op.role));
  }
  for (const char* of_head : {"final_norm", "head", "loss"}) roles.erase(of_head);
  return roles;
}

}  // namespace

TEST_CASE("nothing is captured unless it is asked for") {
  const FragmentPtr eager = pass_of_phase(captured_job({}), Phase::kForward);
  CHECK(eager->captured.empty());
  CHECK(eager->hash != pass_of_phase(captured_job(kAllButExperts), Phase::kForward)->hash);
}

// Four layers, the first one dense. What experts compute, what travels to them and back, and the sums with
// what comes back depend on how tokens choose.
TEST_CASE("without experts each layer is one graph, forward and on the way back") {
  const TrainingJob job = captured_job(kAllButExperts);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const FragmentPtr pass = pass_of_phase(job, phase);
    INFO(pass->name);
    CHECK(graphs(*pass) == 4);
    CHECK(eager_roles(*pass) ==
          std::set<std::string>{"experts", "expert_gate_up", "expert_down", "residual"});
    for (std::size_t i = 0; i < pass->ops.size(); ++i) {
      const Op& op = pass->ops[i];
      if (op.layer < 0 || of_experts(op)) CHECK_FALSE(is_captured(*pass, i));
      if (op.layer == 0 && op.phase != Phase::kGradients) CHECK(is_captured(*pass, i));
      if (is_captured(*pass, i)) CHECK(pass->ops[pass->graph_of(i)].layer == op.layer);
    }
  }
}

TEST_CASE("one module alone is what its ops and the sums behind them are") {
  const FragmentPtr attention = pass_of_phase(captured_job({GraphModule::kAttention}), Phase::kForward);
  CHECK(graphs(*attention) == 4);
  const FragmentPtr dense = pass_of_phase(captured_job({GraphModule::kMlp}), Phase::kForward);
  CHECK(graphs(*dense) == 1);
  const FragmentPtr router = pass_of_phase(captured_job({GraphModule::kMoeRouter}), Phase::kForward);
  CHECK(graphs(*router) == 3);
  // Norm, both products with their activation, sum.
  const auto op_count = [](const Fragment& fragment) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < fragment.ops.size(); ++i) count += is_captured(fragment, i);
    return count;
  };
  CHECK(op_count(*dense) == 5);
  const FragmentPtr both =
      pass_of_phase(captured_job({GraphModule::kAttention, GraphModule::kMlp}), Phase::kForward);
  CHECK(op_count(*both) == op_count(*attention) + op_count(*dense));
  CHECK(graphs(*both) == 4);
}

// Its gradient's messages carry tokens and weights the other way: a combine of both.
TEST_CASE("preparation is of dispatch forward and of its gradient") {
  const TrainingJob job = captured_job(kAllButExperts);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const FragmentPtr pass = pass_of_phase(job, phase);
    const OpKind prepared = phase == Phase::kForward ? OpKind::kDispatch : OpKind::kCombine;
    int count = 0;
    for (std::size_t i = 0; i < pass->ops.size(); ++i) {
      count += pass->captured[i].prepared;
      CHECK(pass->captured[i].prepared == (pass->ops[i].kind == prepared));
    }
    CHECK(count == 3);
  }
  const FragmentPtr without =
      pass_of_phase(captured_job({GraphModule::kAttention, GraphModule::kMoeRouter}), Phase::kForward);
  for (const Captured& op : without->captured) CHECK_FALSE(op.prepared);
}

TEST_CASE("all modules leave nothing of a layer to launch one by one") {
  TrainingJob job = captured_job({GraphModule::kAttention, GraphModule::kMlp, GraphModule::kMoe});
  job.plan.capacity = 1.25;
  for (const Phase phase : {Phase::kForward, Phase::kBackward})
    CHECK(eager_roles(*pass_of_phase(job, phase)).empty());
}

TEST_CASE("what tensor-parallel ranks send in a module is in its graph, gradients over replicas are not") {
  TrainingJob job = captured_job({GraphModule::kAttention, GraphModule::kMlp});
  job.plan.tp = 2;
  job.plan.sequence_parallel = true;
  job.plan.dp = 2;
  job.plan.ep = 2;
  job.plan.overlap_gradients = true;
  Training training(job);
  int inside = 0, gradients = 0;
  for (const Submission& submission : all_submissions(training)) {
    const Fragment& pass = *submission.fragment;
    for (std::size_t i = 0; i < pass.ops.size(); ++i) {
      const Op& op = pass.ops[i];
      if (op.lane == Lane::kDataComm) CHECK_FALSE(is_captured(pass, i));
      gradients += op.lane == Lane::kDataComm;
      inside += op.lane == Lane::kTensorComm && is_captured(pass, i);
    }
  }
  CHECK(inside > 0);
  CHECK(gradients > 0);
}

// The second of two fused kernels is launched with the first.
TEST_CASE("fused neighbours count once") {
  TrainingJob job = captured_job(kAllButExperts);
  const FragmentPtr apart = pass_of_phase(job, Phase::kForward);
  job.plan.fusions = {Fusion::kResidual, Fusion::kRotary, Fusion::kRouter};
  const FragmentPtr fused = pass_of_phase(job, Phase::kForward);
  const auto kernels = [](const Fragment& fragment) {
    int count = 0;
    for (const Captured& op : fragment.captured) count += op.kernels;
    return count;
  };
  CHECK(kernels(*fused) < kernels(*apart));
  for (std::size_t i = 0; i < fused->ops.size(); ++i)
    if (fused->ops[i].fused) CHECK_FALSE(is_captured(*fused, i));
}

TEST_CASE("norms that run again on the way back are in its graph") {
  TrainingJob job = captured_job({GraphModule::kAttention});
  const FragmentPtr kept = pass_of_phase(job, Phase::kBackward);
  job.plan.recompute = RecomputePolicy::kSelective;
  job.plan.recompute_ops = {RecomputeOp::kNorm};
  const FragmentPtr again = pass_of_phase(job, Phase::kBackward);
  const auto norms = [](const Fragment& fragment) {
    int count = 0;
    for (std::size_t i = 0; i < fragment.ops.size(); ++i)
      count += fragment.ops[i].kind == OpKind::kNorm && fragment.ops[i].role == Role::kAttentionNorm &&
               is_captured(fragment, i);
    return count;
  };
  CHECK(norms(*kept) == 0);
  CHECK(norms(*again) == 4);
}

TEST_CASE("two passes side by side keep their graphs apart") {
  TrainingJob job = captured_job({GraphModule::kAttention, GraphModule::kMoeRouter});
  job.model.first_dense = 0;
  job.plan.overlap_two_batch = true;
  job.workload.global_batch = 16;
  Training training(job);
  FragmentPtr pair;
  for (const Submission& submission : all_submissions(training))
    if (submission.second_microbatch >= 0) pair = submission.fragment;
  REQUIRE(pair);
  CHECK(graphs(*pair) == 8);
  for (std::size_t i = 0; i < pair->ops.size(); ++i) {
    if (!is_captured(*pair, i)) continue;
    const Op &op = pair->ops[i], &first = pair->ops[pair->graph_of(i)];
    CHECK(op.second == first.second);
    CHECK(op.layer == first.layer);
    const std::int32_t next = pair->next_in_graph(i);
    if (next >= 0) CHECK(pair->graph_of(next) == pair->graph_of(i));
  }
}

TEST_CASE("weight gradients that are put off are graphs of their own") {
  TrainingJob job = captured_job({GraphModule::kAttention});
  job.plan.pp = 2;
  job.plan.schedule = PipelineKind::kZbH1;
  const FragmentPtr weights = pass_of_phase(job, Phase::kWeight);
  REQUIRE(weights);
  std::set<int> layers;
  for (const Op& op : weights->ops)
    if (op.role == Role::kO) layers.insert(op.layer);
  CHECK(!layers.empty());
  CHECK(graphs(*weights) == static_cast<int>(layers.size()));
}
