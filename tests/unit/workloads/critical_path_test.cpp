#include <catch2/catch.hpp>

#include "small_timeline.h"
#include "workloads/schedule/critical_path.h"

using namespace moebius;
using Catch::Matchers::Contains;

namespace {

Span span(std::int32_t sequence, std::int32_t op, std::int64_t start, std::int64_t end) {
  Span s;
  s.sequence = sequence;
  s.op = op;
  s.rank_class = sequence % 2;
  s.start = {start};
  s.end = {end};
  return s;
}

Span waiting(Span s, std::int64_t until) {
  s.lane = Lane::kExpertComm;
  s.work_start = {until};
  return s;
}

// Two ranks: gemm, dispatch together, gemm. Rank 1's first gemm is the longer one, rank 0's last.
Timeline two_ranks(std::int64_t first_of_1, std::int64_t last_of_0) {
  Timeline t;
  t.facts = {{"schedule_hash", "00ff"}, {"timeline_detail", "ops"}};
  t.fragments = {"forward"};
  t.class_ranks = {0, 1};
  t.class_sizes = {1, 1};
  t.ops = {
      {.kind = OpKind::kGemm, .role = Role::kQkv, .layer = 1, .shape = {.m = 8, .n = 16, .k = 32}},
      {.kind = OpKind::kDispatch,
       .lane = Lane::kExpertComm,
       .role = Role::kExperts,
       .group = GroupRole::kExpert,
       .layer = 1,
       .index = 1,
       .payload = 64},
      {.kind = OpKind::kActivation, .role = Role::kDown, .layer = 1, .index = 2, .shape = {.m = 8, .n = 16}}};
  t.submissions = {{0, 0, 0, 0, 0}, {1, 0, 1, 0, 0}};
  const std::int64_t met = first_of_1, moved = met + 5;
  t.spans = {span(0, 0, 0, 10),
             waiting(span(0, 1, 10, moved), met),
             span(0, 2, moved, moved + last_of_0),
             span(1, 0, 0, first_of_1),
             waiting(span(1, 1, first_of_1, moved), met),
             span(1, 2, moved, moved + 1)};
  return t;
}

}  // namespace

TEST_CASE("the critical path goes from the last end over the peer that came last") {
  const CriticalPath path = critical_path(mapped(two_ranks(20, 7)));
  CHECK(path.makespan == Time{32});
  CHECK(path.gaps == Time{0});
  REQUIRE(path.pieces.size() == 3);
  CHECK(path.pieces[0].span.rank_class == 1);  // the gemm that the other rank waited for
  CHECK(path.pieces[0].to == Time{20});
  CHECK(path.pieces[1].span.op == 1);
  CHECK(path.pieces[1].from == Time{20});
  CHECK(path.pieces[2].span.rank_class == 0);
  CHECK(path.pieces[2].from == Time{25});
}

TEST_CASE("what nothing explains on a critical path is a gap") {
  Timeline t = two_ranks(20, 7);
  t.spans[5] = span(1, 2, 25, 25);
  t.spans[2].start = {28};  // three nanoseconds after the dispatch
  t.spans[3].start = {2};   // and two after the start of the run
  const CriticalPath path = critical_path(mapped(t));
  CHECK(path.gaps == Time{5});
  REQUIRE(path.pieces.size() == 3);
}

TEST_CASE("ops without duration do not lead the critical path in a circle") {
  Timeline t = two_ranks(20, 7);
  t.spans[5] = span(1, 2, 32, 32);
  t.spans[0] = span(0, 0, 0, 0);
  t.spans[1] = waiting(span(0, 1, 0, 25), 20);
  const CriticalPath path = critical_path(mapped(t));
  CHECK(path.makespan == Time{32});
  Time sum = path.gaps;
  for (const PathPiece& piece : path.pieces) sum += piece.to - piece.from;
  CHECK(sum == Time{32});
}

TEST_CASE("an empty run has an empty critical path") {
  Timeline t = two_ranks(20, 7);
  t.spans.clear();
  CHECK(critical_path(mapped(t)).pieces.empty());
}

TEST_CASE("the ops that explain a difference come first and add up to it") {
  // a: gemm 20, dispatch 5, activation 7; b: gemm 12, dispatch 5, activation 40.
  const PathDifference d = compare_paths(mapped(two_ranks(20, 7)), mapped(two_ranks(12, 40)));
  CHECK(d.makespan_a == Approx(32e-9));
  CHECK(d.makespan_b == Approx(57e-9));
  REQUIRE(d.ops.size() == 3);
  CHECK(d.ops[0].op.kind == OpKind::kActivation);
  CHECK(d.ops[0].b - d.ops[0].a == Approx(33e-9));
  CHECK(d.ops[1].op.kind == OpKind::kGemm);
  CHECK(d.ops[1].b - d.ops[1].a == Approx(-8e-9));
  CHECK(d.ops[2].b - d.ops[2].a == Approx(0).margin(1e-15));
  CHECK(d.rest == 0);
  REQUIRE(d.kinds.size() == 3);
  CHECK(d.kinds[0].kind == OpKind::kActivation);
  CHECK(d.kinds[1].a == Approx(20e-9));
}

TEST_CASE("the tenth op is told and the eleventh is in the rest") {
  // Eleven ops one after the other; op i takes 10 ns in a and 11 + i in b. The first differs least, by 1.
  const auto chain = [](bool longer) {
    Timeline t = two_ranks(20, 7);
    t.ops.clear();
    t.spans.clear();
    std::int64_t at = 0;
    for (std::int32_t i = 0; i < 11; ++i) {
      t.ops.push_back({.kind = OpKind::kGemm, .index = i});
      const std::int64_t end = at + (longer ? 11 + i : 10);
      t.spans.push_back(span(0, i, at, end));
      at = end;
    }
    return t;
  };
  const PathDifference d = compare_paths(mapped(chain(false)), mapped(chain(true)));
  REQUIRE(d.ops.size() == 10);
  CHECK(d.ops[0].op.index == 10);
  CHECK(d.ops[9].op.index == 1);
  CHECK(d.rest == Approx(1e-9));
}

TEST_CASE("the text of a difference names kinds and ops with their shares") {
  const std::string text = to_text(compare_paths(mapped(two_ranks(20, 7)), mapped(two_ranks(12, 40))));
  CHECK_THAT(text, Contains("gemm                      20 ns   62.5%      12 ns   21.1%"));
  CHECK_THAT(text, Contains("activation down layer 1, forward (m=8 n=16)"));
  CHECK_THAT(text, Contains("dispatch experts layer 1, forward (64 B a token)"));
}
