#include <catch2/catch.hpp>

#include <memory>

#include "small_schedule.h"
#include "workloads/schedule/work.h"

using namespace moebius;

namespace {

// One op of a kind with a payload of 1000 bytes.
double sent(OpKind kind, int group_size) {
  Op op{.kind = kind, .group = GroupRole::kWorld};
  op.payload = {1000};
  return sent_bytes(op, Fragment{}, group_size, 0);
}

// 2 ranks, 4 experts, popularity so skewed that the members differ.
Fragment skewed_fragment() {
  Fragment fragment = small_fragment();
  RouteSpec spec = small_route();
  spec.popularity = {.kind = PopularityKind::kZipf, .exponent = 3};
  spec.tokens = 64;
  fragment.routes[0] = std::make_shared<const Route>(spec);
  return fragment;
}

}  // namespace

TEST_CASE("a rank sends the least that a collective needs") {
  REQUIRE(sent(OpKind::kAllReduce, 4) == Approx(1500));  // 2 * 3/4: reduce-scatter and all-gather
  REQUIRE(sent(OpKind::kReduceScatter, 4) == Approx(750));
  REQUIRE(sent(OpKind::kAllGather, 4) == Approx(750));
  REQUIRE(sent(OpKind::kAllToAll, 4) == Approx(750));
  REQUIRE(4 * sent(OpKind::kBroadcast, 4) == Approx(3000));  // three ranks get 1000 bytes each
  REQUIRE(sent(OpKind::kSend, 2) == 1000);
  REQUIRE(sent(OpKind::kRecv, 2) == 0);
  REQUIRE(sent(OpKind::kAllReduce, 1) == 0);
}

TEST_CASE("dispatch sends a row for each token and other rank, combine brings it back") {
  const Fragment fragment = skewed_fragment();
  const Route& route = *fragment.routes[0];
  REQUIRE(route.tokens_between(0, 1) != route.tokens_between(1, 0));
  REQUIRE(sent_bytes(fragment.ops[1], fragment, 2, 0) == 64.0 * route.tokens_between(0, 1));
  REQUIRE(sent_bytes(fragment.ops[3], fragment, 2, 0) == 64.0 * route.tokens_between(1, 0));
}

// Rows of 64 bytes. Each to each of its experts: as many as the other rank's experts compute of what this one
// sent, the mean over its tokens. As a gather: all tokens of both ranks, half of them from each.
TEST_CASE("what a dispatch carries is as its algorithm has it") {
  Fragment fragment = skewed_fragment();
  const Route& route = *fragment.routes[0];
  const auto carried = [&](Algorithm algorithm, int op, int member) {
    fragment.ops[op].algorithm = algorithm;
    return carried_bytes(fragment.ops[op], fragment, 2, member);
  };
  const double copies = static_cast<double>(route.rows_of_rank(1)) / route.received_tokens(1);
  REQUIRE(copies > 1);
  for (const Algorithm each : {Algorithm::kDirect, Algorithm::kLibrary})
    REQUIRE(carried(each, 1, 0) == Approx(64 * route.tokens_between(0, 1) * copies));
  // What rank 1 sends back of rank 0's tokens is what it received.
  REQUIRE(carried(Algorithm::kLibrary, 3, 1) == Approx(64 * route.tokens_between(0, 1) * copies));
  REQUIRE(carried(Algorithm::kRing, 1, 0) == 64.0 * 2 * 64 / 2);
  for (const Algorithm once : {Algorithm::kAuto, Algorithm::kHierarchical})
    REQUIRE(carried(once, 1, 0) == sent_bytes(fragment.ops[1], fragment, 2, 0));
}

// Pairs of each sequence by itself: 65 sequences with the mean number of queries would have twice as many as
// a prompt of 4,096 tokens beside 64 sequences with one query over 4,096 keys.
TEST_CASE("attention over a batch counts the pairs of every sequence") {
  Batch mixed;
  mixed.sequences.push_back({.prompt = 4096, .count = 4096, .pages = {}});
  for (int i = 0; i < 64; ++i)
    mixed.sequences.push_back({.prompt = 4095, .past = 4095, .count = 1, .pages = {}});
  Fragment fragment;
  fragment.batches.push_back(std::make_shared<const Batch>(mixed));
  const Shape shape{
      .m = 4160, .groups = 65, .heads = 8, .kv_heads = 8, .head_dim = 128, .v_dim = 128, .kv = 4096};
  const double pairs = 4096.0 * 4097 / 2 + 64.0 * 4096;
  for (const OpKind kind : {OpKind::kPagedAttention, OpKind::kAttention}) {
    const Op op{.kind = kind, .batch = 0, .shape = shape};
    REQUIRE(op_flops(op, fragment).value == Approx(2 * pairs * 8 * 256));
  }
}

TEST_CASE("a member's expert ops have the rows that the route gives it") {
  Fragment fragment = skewed_fragment();
  const Route& route = *fragment.routes[0];
  REQUIRE(route.rows_of_rank(0) != route.rows_of_rank(1));
  for (const int member : {0, 1}) {
    REQUIRE(member_shape(fragment.ops[2], fragment, member).m == route.rows_of_rank(member));
    Op wgrad = fragment.ops[2];
    wgrad.kind = OpKind::kGroupedGemmWgrad;
    REQUIRE(member_shape(wgrad, fragment, member).k == route.rows_of_rank(member));
    REQUIRE(member_shape(wgrad, fragment, member).m == wgrad.shape.m);
    Op gate = fragment.ops[2];
    gate.kind = OpKind::kGate;
    REQUIRE(member_shape(gate, fragment, member) == gate.shape);
  }
}

TEST_CASE("folded and unfolded classes do the same work in all") {
  const Fragment fragment = skewed_fragment();
  const Layout folded = small_layout(2, true), unfolded = small_layout(2, false);
  for (const Op& op : fragment.ops) {
    const ClassWork all = class_work(op, fragment, folded, 0);
    const ClassWork first = class_work(op, fragment, unfolded, 0),
                    second = class_work(op, fragment, unfolded, 1);
    REQUIRE(all.flops == Approx(first.flops + second.flops));
    REQUIRE(all.sent == Approx(first.sent + second.sent));
  }
  // 2 ranks x 64 tokens x 2 copies, 2 FLOPs for each of 32 x 32 weights
  REQUIRE(class_work(fragment.ops[2], fragment, folded, 0).flops == Approx(2 * 64 * 2 * 2 * 32 * 32));
}

TEST_CASE("a class of several expert groups counts each of them") {
  // Four ranks, two groups of two, one class: twice the work of one group.
  const Fragment fragment = skewed_fragment();
  Layout one = small_layout(2, true), two = small_layout(4, true);
  two.classes[0].groups[static_cast<int>(GroupRole::kExpert)].ranks = {0, 1};
  for (const Op& op : fragment.ops) {
    REQUIRE(class_work(op, fragment, two, 0).flops == Approx(2 * class_work(op, fragment, one, 0).flops));
    REQUIRE(class_work(op, fragment, two, 0).sent == Approx(2 * class_work(op, fragment, one, 0).sent));
  }
}
