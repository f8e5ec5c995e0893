#include <catch2/catch.hpp>

#include "hw/catalog.h"
#include "models/model.h"
#include "workloads/collective.h"
#include "workloads/report/collective_choice.h"

using namespace moebius;

namespace {

CollectiveWorkload read(const std::string& workload) {
  static const Catalog catalog;
  static const ModelCatalog models;
  const std::string text =
      R"({"moebius": 1, "kind": "collective", "name": "n", "cluster": {"pools": [{"name": "p",
    "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}], "fabric": {"type": "single-node"}}, "workload": )";
  return read_scenario(parse_document(text + workload + "}", "s.json"), catalog, models).collective;
}

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
  CollectiveRun run({.operation = OpKind::kAllToAll, .bytes = {4000}, .ranks = 8, .groups = 2, .fold = false},
                    {.ranks_per_node = 2});
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

TEST_CASE("a folded collective over two pools has a class for each") {
  CollectiveRun run({.operation = OpKind::kAllReduce, .bytes = {4000}, .ranks = 6}, {.pool_devices = {4, 8}});
  REQUIRE(run.layout().classes.size() == 2);
  REQUIRE(run.layout().classes[0].ranks == std::vector<std::int32_t>{0, 1, 2, 3});
  REQUIRE(run.layout().classes[1].ranks == std::vector<std::int32_t>{4, 5});
  REQUIRE(run.layout().classes[1].group(GroupRole::kWorld).my_index == 4);
}

TEST_CASE("channels of a collective are cores that its op holds") {
  CollectiveRun run({.operation = OpKind::kAllReduce, .bytes = {4000}, .ranks = 4, .channels = 12});
  REQUIRE(submissions_of(run)[0].fragment->ops[0].units == 12);
}

TEST_CASE("ranks with parts of their own are classes each, with room for the fullest") {
  const auto pairs = std::make_shared<const PairBytes>(PairBytes{2, {0, 8000, 4000, 4000}});
  CollectiveRun run({.operation = OpKind::kAllToAll, .bytes = {8000}, .ranks = 2, .matrix = pairs});
  const std::vector<Submission> all = submissions_of(run);
  REQUIRE(all.size() == 2);
  const Fragment& f = *all[0].fragment;
  REQUIRE(f.pair_bytes == pairs);
  REQUIRE(f.tensors[f.input(f.ops[0], 0)].rows == 2000);   // FP32: 8000 bytes before,
  REQUIRE(f.tensors[f.output(f.ops[0], 0)].rows == 3000);  // 8000 + 4000 after
}

// 12,800 elements: 4 or 2 bytes each; FP8 1 byte, and 4 for the scale of each 128.
TEST_CASE("elements of a format count with their share of its scales") {
  const auto bytes = [](const std::string& dtype) {
    return read(R"({"operation": "all-gather", "ranks": 8, "elements": 12800, "dtype": ")" + dtype + R"("})")
        .bytes.value;
  };
  REQUIRE(bytes("fp32") == 51200);
  REQUIRE(bytes("bf16") == 25600);
  REQUIRE(bytes("fp8") == 12800 + 400);
}

// Exponent 1 over two receivers: 1 and 1/2 of 1 + 1/2.
TEST_CASE("a zipf matrix shares out what each rank holds") {
  const CollectiveWorkload work =
      read(R"({"operation": "all-to-all", "ranks": 2, "bytes": "3 MB", "matrix": {"zipf": 1}})");
  REQUIRE(work.matrix->at(0, 0) == Approx(2e6));
  REQUIRE(work.matrix->at(0, 1) == Approx(1e6));
  REQUIRE(work.matrix->at(1, 0) == Approx(2e6));
  REQUIRE(work.matrix->received(0) == Approx(2e6));
  REQUIRE(work.bytes.value == Approx(3e6));
}

TEST_CASE("a report names the algorithm taken, and a faster one only where it is worth it") {
  CollectiveChoice choice{.ranks = 100, .nodes = 13};
  choice.automatic = true;
  choice.chosen = {Algorithm::kTree, 16.45e-3, "LL128"};
  choice.candidates = {{Algorithm::kRing, 16e-3, "Simple"}, choice.chosen};
  CHECK(algorithm_text(choice) == "tree LL128");
  choice.candidates[0].seconds = 12.34e-3;
  CHECK(algorithm_text(choice) ==
        "tree LL128, as the library's tuner chooses; ring Simple would take 12.34 ms on an idle network");
  choice.chosen = {};
  choice.candidates = {};
  CHECK(algorithm_text(choice) == "library");
}
