// Routed exchanges: what leaves, what arrives, and that the way back undoes the way there.
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "real/route_plan.h"
#include "tests/unit/real/hand_made.h"

namespace moebius {
namespace {

constexpr int kRanks = 3, kExperts = 6, kActive = 2, kTokens = 7, kColumns = 2;
constexpr std::uint32_t kX = 1, kWeights = 2, kSums = 3, kBack = 4;

RoutePtr some_route(PopularityKind kind) {
  return std::make_shared<const Route>(RouteSpec{.seed = 5,
                                                 .popularity = {.kind = kind, .exponent = 1},
                                                 .ranks = kRanks,
                                                 .ranks_per_node = kRanks,
                                                 .experts = kExperts,
                                                 .active = kActive,
                                                 .tokens = kTokens});
}

Tensor transient(std::int64_t rows, std::int64_t columns) {
  return {.dtype = DType::kFp32, .rows = rows, .columns = columns};
}

Op routed(OpKind kind, std::uint32_t match) {
  Op op = is_communication(kind) ? meeting(kind, GroupRole::kExpert, match)
                                 : Op{.kind = kind, .dtype = DType::kFp32};
  op.route = 0;
  op.shape = {.m = kTokens, .n = kColumns, .k = kActive};
  return op;
}

// Dispatch, then either straight back, or through copies by expert.
FragmentPtr round_trip(const RoutePtr& route, bool by_expert) {
  FragmentBuilder b("round trip", Phase::kForward);
  b.add_route(route);
  const std::int64_t received = route->max_received_tokens(), rows = route->max_rows_of_rank();
  const TensorId x = b.add(kept(kX, kTokens, kColumns)), weights = b.add(kept(kWeights, kTokens, kActive));
  const TensorId sums = b.add(kept(kSums, kTokens, kColumns)), back = b.add(kept(kBack, kTokens, kActive));
  TensorId arrived = b.add(transient(received, kColumns)),
           arrived_weights = b.add(transient(received, kActive));
  b.emit(routed(OpKind::kDispatch, 1), {x, weights}, {arrived, arrived_weights});
  if (by_expert) {
    const TensorId copies = b.add(transient(rows, kColumns)), row_weights = b.add(transient(rows, 1));
    b.emit(routed(OpKind::kPermute, 0), {arrived, arrived_weights}, {copies, row_weights});
    arrived = b.add(transient(received, kColumns)), arrived_weights = b.add(transient(received, kActive));
    b.emit(routed(OpKind::kPermuteGrad, 0), {copies, row_weights}, {arrived, arrived_weights});
  }
  b.emit(routed(OpKind::kCombine, 2), {arrived, arrived_weights}, {sums, back});
  return b.freeze_it();
}

std::vector<float> numbers(int rank, int count) {
  std::vector<float> x;
  for (int i = 0; i < count; ++i) x.push_back(static_cast<float>(rank * 1000 + i + 1));
  return x;
}

// Members that hold an expert of the token.
int members_of(const RoutePlan& plan, std::int32_t token) {
  int members = 0;
  for (const auto& tokens : plan.sent)
    members += static_cast<int>(std::count(tokens.begin(), tokens.end(), token));
  return members;
}

}  // namespace

TEST_CASE("a route's plan has the counts that the schedule is charged with") {
  for (const PopularityKind kind : {PopularityKind::kBalanced, PopularityKind::kZipf}) {
    const RoutePtr route = some_route(kind);
    for (int member = 0; member < kRanks; ++member) {
      const RoutePlan plan = plan_route(*route, member);
      CHECK(plan.received == route->received_tokens(member));
      CHECK(static_cast<int>(plan.copy_row.size()) == route->rows_of_rank(member));
      for (int other = 0; other < kRanks; ++other) {
        CHECK(static_cast<int>(plan.sent[other].size()) == route->tokens_between(member, other));
        CHECK(plan.received_from[other] == route->tokens_between(other, member));
      }
    }
  }
}

TEST_CASE("copies stand by expert, and each is a choice of its token") {
  const RoutePtr route = some_route(PopularityKind::kZipf);
  const RoutePlan plan = plan_route(*route, 1);
  // The choices of every received row, in the order of sources and tokens.
  std::vector<std::vector<std::int32_t>> received;
  for (int source = 0; source < kRanks; ++source) {
    const auto choices = route->choices(source);
    const RoutePlan from = plan_route(*route, source);
    for (const std::int32_t token : from.sent[1]) {
      received.push_back({choices[token * kActive], choices[token * kActive + 1]});
    }
  }
  std::size_t copy = 0;
  for (int expert = 0; expert < 2; ++expert) {
    for (int i = 0; i < plan.expert_rows[expert]; ++i, ++copy) {
      CHECK(received[plan.copy_row[copy]][plan.copy_slot[copy]] ==
            2 + expert);  // member 1 holds experts 2 and 3
    }
  }
  CHECK(copy == plan.copy_row.size());
}

TEST_CASE("dispatch and combine bring a token back once from each member, and its weights whole") {
  const RoutePtr route = some_route(PopularityKind::kZipf);
  for (const bool by_expert : {false, true}) {
    HandMade hand_made(one_group(kRanks, GroupRole::kExpert));
    for (int rank = 0; rank < kRanks; ++rank) {
      hand_made.executor().set_parameter(rank, kX, numbers(rank, kTokens * kColumns));
      hand_made.executor().set_parameter(rank, kWeights, numbers(rank, kTokens * kActive));
    }
    hand_made.run_everywhere(round_trip(route, by_expert));
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto x = numbers(rank, kTokens * kColumns), sums = hand_made.executor().tensor(rank, kSums);
      const RoutePlan plan = plan_route(*route, rank);
      for (int token = 0; token < kTokens; ++token) {
        // Straight: one row from each member. Through the experts: one from each copy.
        const int times = by_expert ? kActive : members_of(plan, token);
        for (int c = 0; c < kColumns; ++c)
          CHECK(sums[token * kColumns + c] == times * x[token * kColumns + c]);
      }
      CHECK(hand_made.executor().tensor(rank, kBack) == numbers(rank, kTokens * kActive));
    }
  }
}

TEST_CASE("the bytes that move are those that the route counts") {
  const RoutePtr route = some_route(PopularityKind::kZipf);
  HandMade hand_made(one_group(kRanks, GroupRole::kExpert));
  hand_made.run_everywhere(round_trip(route, false));
  for (const Transfer& transfer : hand_made.executor().transfers()) {
    int tokens = 0;  // to others on the way there, to others on the way back
    for (int other = 0; other < kRanks; ++other) {
      if (other == transfer.rank) continue;
      tokens += transfer.op == 0 ? route->tokens_between(transfer.rank, other)
                                 : route->tokens_between(other, transfer.rank);
    }
    CHECK(transfer.sent_bytes == tokens * (kColumns + kActive) * 4);
  }
}

TEST_CASE("unpermute sums the copies of a token, its gradient copies the row") {
  const RoutePtr route = some_route(PopularityKind::kBalanced);
  FragmentBuilder b("copies", Phase::kForward);
  b.add_route(route);
  const std::int64_t received = route->max_received_tokens(), rows = route->max_rows_of_rank();
  const TensorId x = b.add(kept(kX, kTokens, kColumns)), sums = b.add(kept(kSums, kTokens, kColumns));
  const TensorId arrived = b.add(transient(received, kColumns)), copies = b.add(transient(rows, kColumns));
  const TensorId summed = b.add(transient(received, kColumns));
  b.emit(routed(OpKind::kDispatch, 1), {x}, {arrived});
  b.emit(routed(OpKind::kUnpermuteGrad, 0), {arrived}, {copies});
  b.emit(routed(OpKind::kUnpermute, 0), {copies}, {summed});
  b.emit(routed(OpKind::kCombine, 2), {summed}, {sums});
  HandMade hand_made(one_group(kRanks, GroupRole::kExpert));
  for (int rank = 0; rank < kRanks; ++rank)
    hand_made.executor().set_parameter(rank, kX, numbers(rank, kTokens * kColumns));
  hand_made.run_everywhere(b.freeze_it());
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto x_values = numbers(rank, kTokens * kColumns), found = hand_made.executor().tensor(rank, kSums);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == kActive * x_values[i]);
  }
}

}  // namespace moebius
