// Halves of an iteration that compute in turn.
#include <catch2/catch.hpp>

#include "workloads/serving/decode_stages.h"
#include "workloads/serving/two_batches.h"

namespace moebius {
namespace {

BatchPtr batch_of_counts(const std::vector<std::int32_t>& counts) {
  Batch batch{64, {}};
  std::int32_t page = 0;
  for (const std::int32_t count : counts) batch.sequences.push_back({page, 1000, 10, count, {page++}});
  return std::make_shared<const Batch>(std::move(batch));
}

std::vector<std::int32_t> counts_of(const Batch& batch) {
  std::vector<std::int32_t> counts;
  for (const BatchSequence& s : batch.sequences) counts.push_back(s.count);
  return counts;
}

Op op_of(OpKind kind, int layer, Role role = Role::kNone) {
  Op op;
  op.kind = kind;
  op.layer = static_cast<std::int16_t>(layer);
  op.role = role;
  if (is_communication(kind)) op.lane = Lane::kExpertComm;
  return op;
}

// What a layer with experts does, as it is lowered: shared experts last.
void add_layer(Fragment& fragment, int layer) {
  for (const OpKind kind : {OpKind::kNorm, OpKind::kGemm, OpKind::kPagedAttention, OpKind::kGate,
                            OpKind::kDispatch, OpKind::kGroupedGemm, OpKind::kCombine})
    fragment.ops.push_back(op_of(kind, layer));
  fragment.ops.push_back(op_of(OpKind::kGemm, layer, Role::kSharedDown));
  fragment.ops.push_back(op_of(OpKind::kGemm, layer, Role::kSharedScore));
  fragment.ops.push_back(op_of(OpKind::kActivation, layer, Role::kSharedDown));
  fragment.ops.push_back(op_of(OpKind::kAdd, layer));
}

std::vector<std::vector<OpKind>> kinds_of(const Fragment& fragment, const Pieces& pieces) {
  std::vector<std::vector<OpKind>> kinds(pieces.count());
  for (std::size_t i = 0; i < pieces.count(); ++i)
    for (std::int32_t at = pieces.first[i]; at < pieces.first[i + 1]; ++at)
      kinds[i].push_back(fragment.ops[pieces.ops[at]].kind);
  return kinds;
}

}  // namespace

TEST_CASE("a layer that decodes has five stages, and shared experts compute while tokens are dispatched") {
  Fragment fragment;
  fragment.ops.push_back(op_of(OpKind::kEmbedding, -1));
  add_layer(fragment, 0);
  add_layer(fragment, 1);
  fragment.ops.push_back(op_of(OpKind::kGreedySample, -1));
  using K = OpKind;
  const std::vector<std::vector<OpKind>> stages{{K::kNorm, K::kGemm},
                                                {K::kPagedAttention, K::kGate},
                                                {K::kDispatch, K::kGemm, K::kGemm, K::kActivation},
                                                {K::kGroupedGemm, K::kCombine},
                                                {K::kAdd}};
  std::vector<std::vector<OpKind>> expected = stages;
  expected.front().insert(expected.front().begin(), K::kEmbedding);
  expected.insert(expected.end(), stages.begin(), stages.end());
  expected.push_back({K::kGreedySample});
  CHECK(kinds_of(fragment, decode_stages(fragment)) == expected);
}

TEST_CASE(
    "a layer without experts has what precedes attention and the rest, and a fused op stays where it is") {
  Fragment fragment;
  for (const OpKind kind : {OpKind::kNorm, OpKind::kPagedAttention, OpKind::kGemm, OpKind::kAdd})
    fragment.ops.push_back(op_of(kind, 0));
  fragment.ops.push_back(op_of(OpKind::kNorm, 1));
  fragment.ops.back().fused = true;  // with the sum at the end of layer 0
  using K = OpKind;
  const auto kinds = kinds_of(fragment, decode_stages(fragment));
  REQUIRE(kinds.size() == 2);
  CHECK(kinds[0] == std::vector<OpKind>{K::kNorm});
  CHECK(kinds[1] == std::vector<OpKind>{K::kPagedAttention, K::kGemm, K::kAdd, K::kNorm});
}

// Two layers without experts, of two stages each of five: the second half's come where the first one has
// none.
TEST_CASE("the second half decodes two stages behind the first") {
  Fragment fragment;
  fragment.name = "decode";
  fragment.launch = LaunchMode::kKernel;
  fragment.one_expert_call = true;
  for (const int layer : {0, 1})
    for (const OpKind kind : {OpKind::kNorm, OpKind::kAttention}) {
      Op op = op_of(kind, layer);
      op.shape = {.m = 1, .n = 1};
      fragment.ops.push_back(op);
    }
  const FragmentPtr half = freeze(std::move(fragment));
  const FragmentPtr both = lower_two_batches(half, half, true);
  std::vector<std::pair<int, int>> order;  // half and layer
  for (const Op& op : both->ops) order.emplace_back(op.second ? 1 : 2, op.layer);
  using Order = std::vector<std::pair<int, int>>;
  CHECK(order == Order{{1, 0}, {1, 0}, {2, 0}, {2, 0}, {1, 1}, {1, 1}, {2, 1}, {2, 1}});
  for (const FragmentPtr& pair : {both, lower_two_batches(half, half, false)}) {  // launched as each half is
    CHECK(pair->launch == LaunchMode::kKernel);
    CHECK(pair->one_expert_call);
  }
}

TEST_CASE("a batch is cut between sequences where the halves come out nearly alike") {
  const auto halves = halves_of({batch_of_counts({20, 30, 50})});  // 50 and 50
  REQUIRE(halves);
  CHECK(counts_of(*halves->first[0]) == std::vector<std::int32_t>{20, 30});
  CHECK(counts_of(*halves->second[0]) == std::vector<std::int32_t>{50});
}

// The ends nearest to the middle leave 40 of 100, less than 48%: 50 and 50 through the second sequence, whose
// second part stands behind 10 + 10 tokens.
TEST_CASE("otherwise a sequence is cut and its second part stands behind its first") {
  const auto halves = halves_of({batch_of_counts({40, 60})});
  REQUIRE(halves);
  CHECK(counts_of(*halves->first[0]) == std::vector<std::int32_t>{40, 10});
  CHECK(counts_of(*halves->second[0]) == std::vector<std::int32_t>{50});
  CHECK(halves->second[0]->sequences[0].past == 20);
}

TEST_CASE("replicas with the same batch share its halves and one row alone has none") {
  const BatchPtr two = batch_of_counts({1, 1});
  const auto halves = halves_of({two, two, two});
  REQUIRE(halves);
  CHECK(halves->first.size() == 3);
  CHECK(halves->first[0] == halves->first[2]);
  CHECK_FALSE(halves_of({two, batch_of_counts({1})}));
}

TEST_CASE("what shared experts quantise for themselves stands before their products") {
  Fragment fragment;
  for (const OpKind kind :
       {OpKind::kPagedAttention, OpKind::kDispatch, OpKind::kGroupedGemm, OpKind::kCombine})
    fragment.ops.push_back(op_of(kind, 0));
  fragment.ops.push_back(op_of(OpKind::kQuantise, 0, Role::kMlpNorm));
  fragment.ops.push_back(op_of(OpKind::kGemm, 0, Role::kSharedGateUp));
  fragment.ops.push_back(op_of(OpKind::kAdd, 0));
  using K = OpKind;
  const auto kinds = kinds_of(fragment, decode_stages(fragment));
  REQUIRE(kinds.size() == 5);
  CHECK(kinds[2] == std::vector<OpKind>{K::kDispatch, K::kQuantise, K::kGemm});
  CHECK(kinds[4] == std::vector<OpKind>{K::kAdd});
}

}  // namespace moebius
