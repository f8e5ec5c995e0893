// Every collective against what it should be, computed directly.
#include <functional>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/real/hand_made.h"

namespace moebius {
namespace {

using Floats = std::vector<float>;

constexpr int kMembers = 3;
constexpr std::uint32_t kIn = 1, kOut = 2;

// Element i of rank r: whole numbers, so that sums are exact in any order.
Floats brought(int rank, int count) {
  Floats x;
  for (int i = 0; i < count; ++i) x.push_back(static_cast<float>(100 * (rank + 1) + i));
  return x;
}

struct Outcome {
  std::vector<Floats> out;   // by rank
  std::vector<double> sent;  // bytes, by rank
};

// One collective from a tensor of rows_in x 2 to one of rows_out x 2.
Outcome run(OpKind kind, int rows_in, int rows_out) {
  FragmentBuilder builder("collective", Phase::kForward);
  const TensorId in = builder.add(kept(kIn, rows_in, 2)), out = builder.add(kept(kOut, rows_out, 2));
  builder.emit(meeting(kind, GroupRole::kData, 7), {in}, {out});
  HandMade hand_made(one_group(kMembers, GroupRole::kData));
  for (int rank = 0; rank < kMembers; ++rank)
    hand_made.executor().set_parameter(rank, kIn, brought(rank, rows_in * 2));
  hand_made.run_everywhere(builder.freeze_it());
  Outcome outcome;
  for (int rank = 0; rank < kMembers; ++rank) outcome.out.push_back(hand_made.executor().tensor(rank, kOut));
  for (const Transfer& transfer : hand_made.executor().transfers())
    outcome.sent.push_back(transfer.sent_bytes);
  return outcome;
}

// Several tensors of the whole run, in place: 5 and 2 elements do not divide by 3 members.
std::vector<std::vector<Floats>> run_in_place(OpKind kind) {
  FragmentBuilder builder("in place", Phase::kGradients);
  const TensorId a = builder.add(kept(kIn, 5, 1)), b = builder.add(kept(kOut, 1, 2));
  builder.emit(meeting(kind, GroupRole::kData, 7), {a, b}, {a, b});
  HandMade hand_made(one_group(kMembers, GroupRole::kData));
  for (int rank = 0; rank < kMembers; ++rank) {
    hand_made.executor().set_parameter(rank, kIn, brought(rank, 5));
    hand_made.executor().set_parameter(rank, kOut, brought(rank, 2));
  }
  hand_made.run_everywhere(builder.freeze_it());
  std::vector<std::vector<Floats>> tensors;
  for (int rank = 0; rank < kMembers; ++rank) {
    tensors.push_back({hand_made.executor().tensor(rank, kIn), hand_made.executor().tensor(rank, kOut)});
  }
  return tensors;
}

}  // namespace

TEST_CASE("all-reduce gives everyone the sum") {
  const Outcome outcome = run(OpKind::kAllReduce, 2, 2);
  for (const Floats& out : outcome.out) CHECK(out == Floats{600, 603, 606, 609});  // 100+200+300 + 3i
  // Shards of ceil(4/3) = 2, 2 and 0 elements: each sends the others' shards, then its own twice: 8 + 16, 8 +
  // 16, 16 + 0 bytes.
  CHECK(outcome.sent == std::vector<double>{24, 24, 16});
}

TEST_CASE("reduce-scatter leaves each member its rows of the sum") {
  const Outcome outcome = run(OpKind::kReduceScatter, 3, 1);
  for (int rank = 0; rank < kMembers; ++rank) {
    CHECK(outcome.out[rank] == Floats{600.0f + 6 * rank, 603.0f + 6 * rank});
    CHECK(outcome.sent[rank] == 16);  // (n-1)/n of 24 bytes
  }
}

TEST_CASE("all-gather gives everyone the rows of all, in the order of members") {
  const Outcome outcome = run(OpKind::kAllGather, 1, 3);
  for (int rank = 0; rank < kMembers; ++rank) {
    CHECK(outcome.out[rank] == Floats{100, 101, 200, 201, 300, 301});
    CHECK(outcome.sent[rank] == 16);  // (n-1)/n of 24 bytes
  }
}

TEST_CASE("broadcast gives everyone what member 0 has, and only member 0 sends") {
  const Outcome outcome = run(OpKind::kBroadcast, 1, 1);
  for (const Floats& out : outcome.out) CHECK(out == Floats{100, 101});
  CHECK(outcome.sent == std::vector<double>{16, 0, 0});
}

TEST_CASE("all-to-all sends row block i to member i") {
  const Outcome outcome = run(OpKind::kAllToAll, 3, 3);
  CHECK(outcome.out[0] == Floats{100, 101, 200, 201, 300, 301});
  CHECK(outcome.out[2] == Floats{104, 105, 204, 205, 304, 305});
  for (const double sent : outcome.sent) CHECK(sent == 16);
}

TEST_CASE("gradients are reduced in place, several tensors at once") {
  for (const auto& tensors : run_in_place(OpKind::kAllReduce)) {
    CHECK(tensors[0] == Floats{600, 603, 606, 609, 612});
    CHECK(tensors[1] == Floats{600, 603});
  }
}

TEST_CASE("a reduce-scatter in place leaves the sum in the member's flat shard") {
  const auto tensors = run_in_place(OpKind::kReduceScatter);  // shards of 2, 2, 1 elements and of 1, 1, 0
  CHECK(tensors[0][0][0] == 600);
  CHECK(tensors[0][0][1] == 603);
  CHECK(tensors[1][0][2] == 606);
  CHECK(tensors[2][0][4] == 612);
  CHECK(tensors[1][1][1] == 603);
}

TEST_CASE("an all-gather in place fills the shards of the others") {
  for (const auto& tensors : run_in_place(OpKind::kAllGather)) {
    CHECK(tensors[0] == Floats{100, 101, 202, 203, 304});
    CHECK(tensors[1] == Floats{100, 201});
  }
}

}  // namespace moebius
