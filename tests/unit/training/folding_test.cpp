// Experts that several ranks share, and what travels where keys are not gathered.
#include <cstdlib>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/cross/small_training.h"
#include "workloads/schedule/context_part.h"
#include "workloads/schedule/work.h"
#include "workloads/training/layers/lowering.h"

namespace moebius {
namespace {

FragmentPtr first_pass(const TrainingJob& job, Phase phase) {
  Training training(job);
  while (true) {
    const auto submission = training.next({});
    if (submission->fragment->phase == phase) return submission->fragment;
    training.completed({submission->sequence, {}});
  }
}

double weight_bytes_of_experts(const TrainingJob& job) {
  double bytes = 0;
  const FragmentPtr forward = first_pass(job, Phase::kForward);
  for (const Tensor& tensor : forward->tensors)
    if (tensor.experts > 0) bytes += tensor.bytes().value;
  return bytes;
}

TrainingJob gqa_job() {
  TrainingJob job = small_job(small_model(AttentionKind::kGqa));
  job.plan.fold = true;
  return job;
}

}  // namespace

// Attention: tensor, context, data. Experts: part, expert group, replicas, whatever those are (arXiv
// 2504.14960, section 3.2). Of sixteen ranks with tp 4: experts over 2 x 4 ranks, twice.
TEST_CASE("ranks that share experts are folded over those of attention") {
  TrainingPlan plan;
  plan.tp = 4;
  plan.cp = 2;
  plan.dp = 2;
  plan.ep = 4;
  plan.expert_tp = 2;
  plan.fold = false;
  const RankClass rank = make_layout(plan).classes[11];
  CHECK(rank.group(GroupRole::kTensor).ranks == std::vector<std::int32_t>{8, 9, 10, 11});
  CHECK(rank.group(GroupRole::kExpertTensor).ranks == std::vector<std::int32_t>{10, 11});
  CHECK(rank.group(GroupRole::kExpert).ranks == std::vector<std::int32_t>{9, 11, 13, 15});
  CHECK(rank.group(GroupRole::kExpertData).ranks == std::vector<std::int32_t>{3, 11});
}

// Four experts on four ranks: whole ones each, or two of which each holds half; 3 * 16 * 32 elements each in
// BF16 either way.
TEST_CASE("sharing experts keeps their bytes on a rank where it takes as many ranks of expert parallelism") {
  TrainingJob job = gqa_job();
  job.plan.dp = 4;
  job.plan.ep = 4;
  const double whole = weight_bytes_of_experts(job);
  CHECK(whole == 3 * 16 * 32 * 2);
  job.plan.ep = 2;
  job.plan.expert_tp = 2;
  CHECK(weight_bytes_of_experts(job) == whole);
  job.plan.ep = 1;
  CHECK(weight_bytes_of_experts(job) == 2 * whole);
}

// 16 tokens a rank go to two of four experts, of which each expert-parallel rank of two holds two. What came
// to a rank (rows r of 32 columns in BF16, 2 weights in FP32) comes to the other one that shares its experts,
// and the sums go back: payloads are those of both.
TEST_CASE("tokens are gathered over ranks that share experts after dispatch and summed before combine") {
  TrainingJob job = gqa_job();
  job.plan.dp = 4;
  job.plan.ep = 2;
  job.plan.expert_tp = 2;
  const FragmentPtr forward = first_pass(job, Phase::kForward);
  std::vector<std::pair<OpKind, double>> moved;
  std::int64_t received = 0;
  for (const Op& op : forward->ops) {
    if (op.kind == OpKind::kDispatch) received = forward->routes[op.route]->max_received_tokens();
    if (op.group == GroupRole::kExpertTensor) moved.emplace_back(op.kind, op.payload.value);
    if (op.kind == OpKind::kGroupedGemm && op.role == Role::kExpertDown) CHECK(op.shape.k == 16 / 2);
    if (op.kind != OpKind::kGroupedGemm) continue;
    // Two experts get half of the copies of four ranks: 4 * 16 * 2 / 2.
    CHECK(op.shape.m == 64);
  }
  REQUIRE(received > 0);
  const double rows = 2.0 * static_cast<double>(received);
  CHECK(moved == std::vector<std::pair<OpKind, double>>{{OpKind::kAllGather, rows * 32 * 2},
                                                        {OpKind::kAllGather, rows * 2 * 4},
                                                        {OpKind::kReduceScatter, rows * 32 * 2}});
}

// As before, by the library: a token whose two experts stand on one rank comes there as two rows with a
// weight each, so that half of the 2 * 16 * 2 copies that two ranks send come to each of the two. They are
// gathered and summed, forward and back, as they came.
TEST_CASE("what the library's all-to-all brought is gathered over ranks that share experts row by row") {
  TrainingJob job = gqa_job();
  job.plan.dp = 4;
  job.plan.ep = 2;
  job.plan.expert_tp = 2;
  job.plan.exchange = Algorithm::kLibrary;
  const double rows = 2.0 * 32;
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const FragmentPtr pass = first_pass(job, phase);
    std::vector<double> of_rows;
    for (const Op& op : pass->ops)
      if (op.group == GroupRole::kExpertTensor && op.shape.n == 32) of_rows.push_back(op.payload.value);
    REQUIRE(of_rows.size() == 2);
    for (const double bytes : of_rows) CHECK(bytes == Approx(rows * 32 * 2));
  }
}

// Of a row of 32 columns in BF16: its two weights in FP32 go with it, of the library's, which sends a row for
// each expert, the one.
TEST_CASE("gradients of as many weights come back as went out with a row") {
  for (const auto& [exchange, weights] :
       {std::pair{Algorithm::kAuto, 2}, std::pair{Algorithm::kLibrary, 1}}) {
    TrainingJob job = gqa_job();
    job.plan.dp = job.plan.ep = 4;
    job.plan.exchange = exchange;
    for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
      const FragmentPtr pass = first_pass(job, phase);
      const OpKind carries = phase == Phase::kForward ? OpKind::kDispatch : OpKind::kCombine;
      int found = 0;
      for (const Op& op : pass->ops) {
        if (op.kind != carries) continue;
        CHECK(op.payload.value == 32 * 2 + 4 * weights);
        ++found;
      }
      CHECK(found == 1);
    }
  }
}

// Four ranks on two nodes, each with one of four experts; a token uses two, which stand on one node.
TEST_CASE("tokens of a model without groups keep to as many nodes as the plan says") {
  TrainingJob job = gqa_job();
  job.plan.dp = job.plan.ep = 4;
  job.ranks_per_node = 2;
  const auto nodes_of_all = [&] {
    const FragmentPtr forward = first_pass(job, Phase::kForward);
    const Route& route = *forward->routes.front();
    int sum = 0;
    for (int node = 0; node < 2; ++node) sum += route.tokens_to_node(0, node);
    return sum;
  };
  CHECK(nodes_of_all() > 16);
  job.plan.nodes_per_token = 2;
  CHECK(nodes_of_all() > 16);
  job.plan.nodes_per_token = 1;
  CHECK(nodes_of_all() == 16);
}

// 32 experts in 8 groups, of which a token uses 4. A limit that they keep to anyway changes nothing; else the
// experts of a node are a group where the model's are larger, or where as many of them as a token may use lie
// on so many nodes.
TEST_CASE("a limit on nodes is one on groups of experts wherever these stand") {
  const Experts experts{.routed = 32, .active = 4, .groups = 8, .active_groups = 4};
  const auto groups = [&](int ep, int nodes_per_token, int devices) {
    TrainingPlan plan;
    plan.ep = ep;
    plan.nodes_per_token = nodes_per_token;
    const ExpertGroups found = expert_groups(plan, experts, devices);
    return std::pair(found.all, found.active);
  };
  CHECK(groups(8, 0, 8) == std::pair(8, 4));
  CHECK(groups(8, 1, 8) == std::pair(8, 4));   // one node
  CHECK(groups(16, 2, 8) == std::pair(8, 4));  // two of two
  CHECK(groups(16, 1, 8) == std::pair(2, 1));  // four groups on a node, as many as a token uses
  CHECK(groups(32, 3, 8) == std::pair(8, 3));  // six groups on three nodes
  CHECK(groups(32, 4, 4) == std::pair(8, 4));  // a group a node
  CHECK(groups(32, 2, 4) == std::pair(8, 2));
  CHECK(groups(32, 4, 2) == std::pair(16, 4));  // four groups stand on eight nodes
  CHECK(groups(32, 8, 2) == std::pair(8, 4));
}

// Liu et al. 2023, section 3: keys and values of a member, 2 * s/n * d elements, go n - 1 hops forward; in
// the reverse pass again, and their gradients n. Two layers, n = 4: 4 rows of 2 heads of 8 columns.
TEST_CASE("keys go one hop less than there are ranks, and their gradients all the way round") {
  TrainingJob job = gqa_job();
  job.plan.cp = 4;
  job.plan.context = ContextKind::kRing;
  const double block = 2 * 4 * 16 * 2;
  for (const auto& [phase, hops] : {std::pair{Phase::kForward, 3}, std::pair{Phase::kBackward, 3 + 4}}) {
    const FragmentPtr pass = first_pass(job, phase);
    double sent = 0;
    for (const Op& op : pass->ops) {
      if (op.group != GroupRole::kContext) continue;
      CHECK(op.shape.k == kRingShift);
      sent += sent_bytes(op, *pass, 4, 0);
    }
    CHECK(sent == 2 * hops * block);
  }
}

// n + 1 calls a layer: a block alone, n - 2 times a block with gradients, gradients alone, and home. What
// began only when the first call has ended would wait for the whole attention of the step.
TEST_CASE("a block of keys and the gradients that travel with it are one call") {
  TrainingJob job = gqa_job();
  job.plan.cp = 4;
  job.plan.context = ContextKind::kRing;
  const FragmentPtr pass = first_pass(job, Phase::kBackward);
  std::vector<int> tensors;
  for (const Op& op : pass->ops)
    if (op.group == GroupRole::kContext) tensors.push_back(op.num_inputs);
  const std::vector<int> layer{2, 4, 4, 2, 2};
  REQUIRE(tensors.size() == 2 * layer.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(tensors[i] == layer[i % layer.size()]);
}

// Every step of the ring is attention of a member's rows to as many keys, causal: with s = 16 and n = 4, rows
// 4, that is 4 * 5 / 2 = 10 pairs a step and 40 in all, where whole sequences have 16 * 17 / 2 / 4 = 34: the
// diagonal counts once a step.
TEST_CASE("steps of a ring are alike for all members") {
  TrainingJob job = gqa_job();
  job.plan.cp = 4;
  job.plan.context = ContextKind::kRing;
  int steps = 0;
  const FragmentPtr forward = first_pass(job, Phase::kForward);
  for (const Op& op : forward->ops) {
    if (op.kind != OpKind::kAttention) continue;
    CHECK(ring_step(op) == steps++ % 4);
    CHECK(op.shape.m == 4);
    CHECK(op.shape.kv == 4);
  }
  CHECK(steps == 8);
}

// Jacobs et al. 2023, section 3.1: queries, keys, values and results, each s/n rows of all heads, of which
// (n - 1)/n go to others; 2 layers, n = 2: 8 rows of 4 + 2 + 2 + 4 heads of 8 columns in BF16.
TEST_CASE("four exchanges of heads take the place of gathered keys") {
  TrainingJob job = gqa_job();
  job.plan.cp = 2;
  job.plan.context = ContextKind::kUlysses;
  const FragmentPtr forward = first_pass(job, Phase::kForward);
  double sent = 0;
  int exchanges = 0;
  for (const Op& op : forward->ops) {
    if (op.kind == OpKind::kAttention) CHECK(op.shape == Shape{16, 0, 0, 1, 2, 1, 8, 8, 16, 0});
    if (op.group != GroupRole::kContext) continue;
    sent += sent_bytes(op, *forward, 2, 0);
    ++exchanges;
  }
  CHECK(exchanges == 2 * 4);
  CHECK(sent == 2 * 8 * 12 * 8 * 2 / 2);
}

}  // namespace moebius
