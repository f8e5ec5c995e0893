#include <catch2/catch.hpp>

#include "workloads/collective.h"

using namespace moebius;

namespace {

std::vector<Submission> submissions_of(CollectiveRun& run) {
  std::vector<Submission> all;
  while (auto submission = run.next({})) all.push_back(*submission);
  return all;
}

}  // namespace

TEST_CASE("a folded collective is one op of one class for all ranks") {
  CollectiveRun run(
      {.operation = OpKind::kAllReduce, .algorithm = Algorithm::kRing, .bytes = {4000}, .ranks = 8});
  const std::vector<Submission> all = submissions_of(run);
  REQUIRE(all.size() == 1);
  REQUIRE(run.layout().classes[0].size() == 8);
  REQUIRE(run.layout().classes[0].group(GroupRole::kWorld).ranks.size() == 8);
  REQUIRE(run.layout().classes[0].group(GroupRole::kWorld).num_classes == 1);
  const Op& op = all[0].fragment->ops.at(0);
  REQUIRE(op.kind == OpKind::kAllReduce);
  REQUIRE(op.algorithm == Algorithm::kRing);
  REQUIRE(op.payload.value == 4000);
  REQUIRE_FALSE(run.done());
  run.completed({});
  REQUIRE(run.done());
  REQUIRE(run.progress() == 1);
}

TEST_CASE("an unfolded collective has a class for each rank, and the same fragment") {
  CollectiveRun run({.operation = OpKind::kBroadcast, .bytes = {4000}, .ranks = 4, .fold = false});
  const std::vector<Submission> all = submissions_of(run);
  REQUIRE(all.size() == 4);
  for (int i = 0; i < 4; ++i) {
    REQUIRE(all[i].fragment == all[0].fragment);
    REQUIRE(all[i].rank_class == i);
    REQUIRE(run.layout().classes[i].group(GroupRole::kWorld).my_index == i);
    REQUIRE(run.layout().classes[i].group(GroupRole::kWorld).num_classes == 4);
  }
}

TEST_CASE("groups side by side have every so many-th node each") {
  CollectiveRun run(
      {.operation = OpKind::kAllToAll, .bytes = {4000}, .ranks = 8, .groups = 2, .fold = false}, 2);
  const auto group = [&](int rank) { return run.layout().classes[rank].group(GroupRole::kWorld); };
  REQUIRE(group(0).ranks == std::vector<std::int32_t>{0, 1, 4, 5});  // nodes 0 and 2
  REQUIRE(group(7).ranks == std::vector<std::int32_t>{2, 3, 6, 7});  // nodes 1 and 3
  REQUIRE(group(6).my_index == 2);
  REQUIRE(group(6).num_classes == 4);
}

TEST_CASE("operands have the rows that a collective gives and takes") {
  // 1001 FP32 numbers on 4 ranks: 1004, 251 for each.
  const auto rows = [](OpKind operation) {
    CollectiveRun run({.operation = operation, .bytes = {4004}, .ranks = 4});
    const Fragment& f = *submissions_of(run)[0].fragment;
    return std::pair(f.tensors[f.input(f.ops[0], 0)].rows, f.tensors[f.output(f.ops[0], 0)].rows);
  };
  using Rows = std::pair<std::int64_t, std::int64_t>;
  REQUIRE(rows(OpKind::kAllReduce) == Rows{1004, 1004});
  REQUIRE(rows(OpKind::kReduceScatter) == Rows{1004, 251});
  REQUIRE(rows(OpKind::kAllGather) == Rows{251, 1004});
  REQUIRE(rows(OpKind::kBroadcast) == Rows{1004, 1004});
  REQUIRE(rows(OpKind::kAllToAll) == Rows{1004, 1004});
}

TEST_CASE("send-recv is a send on one rank and its receive on the other, folded or not") {
  for (const bool fold : {true, false}) {
    CollectiveRun run(
        {.operation = OpKind::kSend, .bytes = {64}, .ranks = 2, .dtype = DType::kBf16, .fold = fold});
    const std::vector<Submission> all = submissions_of(run);
    REQUIRE(all.size() == 2);
    const Op &send = all[0].fragment->ops[0], &recv = all[1].fragment->ops[0];
    REQUIRE(send.kind == OpKind::kSend);
    REQUIRE(recv.kind == OpKind::kRecv);
    REQUIRE(send.match == recv.match);
    REQUIRE(send.payload == recv.payload);
    const std::vector<std::int32_t> pair = {0, 1};
    REQUIRE(run.layout().classes[0].group(send.group).ranks == pair);
    REQUIRE(run.layout().classes[1].group(recv.group).ranks == pair);
    REQUIRE(all[0].fragment->tensors[0].rows == 32);  // 64 bytes of BF16
  }
}
