// The workload of a collective scenario.
#include <array>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {

namespace {

constexpr std::array kOperations{
    Named<OpKind>{"all-reduce", OpKind::kAllReduce, "bytes: the whole buffer"},
    Named<OpKind>{"reduce-scatter", OpKind::kReduceScatter, "bytes: the whole buffer"},
    Named<OpKind>{"all-gather", OpKind::kAllGather, "bytes: the gathered buffer"},
    Named<OpKind>{"broadcast", OpKind::kBroadcast, "bytes: the whole buffer"},
    Named<OpKind>{"all-to-all", OpKind::kAllToAll, "bytes: what one rank holds before"},
    Named<OpKind>{"send-recv", OpKind::kSend, "bytes: the message"},
};

constexpr std::array kAlgorithms{
    Named<Algorithm>{"auto", Algorithm::kAuto, "the one that suits size and ranks"},
    Named<Algorithm>{"ring", Algorithm::kRing, "neighbour to neighbour"},
    Named<Algorithm>{"direct", Algorithm::kDirect, "everyone to everyone at once"},
    Named<Algorithm>{"tree", Algorithm::kTree, "a binary tree"},
    Named<Algorithm>{"hierarchical", Algorithm::kHierarchical, "inside nodes, then between them"},
};

constexpr std::array kDTypes{Named<DType>{"fp32", DType::kFp32, ""}, Named<DType>{"bf16", DType::kBf16, ""},
                             Named<DType>{"fp16", DType::kFp16, ""}, Named<DType>{"fp8", DType::kFp8, ""}};

}  // namespace

void read_collective_workload(Section section, Scenario& scenario) {
  CollectiveWorkload& work = scenario.collective;
  work.operation =
      section.choice<OpKind>("operation", kOperations, std::nullopt, "what the ranks do together");
  work.algorithm = section.choice<Algorithm>("algorithm", kAlgorithms, Algorithm::kAuto, "how");
  work.bytes = section.bytes("bytes", std::nullopt, "see the operation for what it counts");
  work.ranks = static_cast<int>(
      section.integer("ranks", {2, 1 << 20}, std::nullopt, "the first devices of the cluster"));
  work.groups = static_cast<int>(section.integer(
      "groups", {1, 1 << 20}, 1, "equal groups that do it side by side, each on every groups-th node"));
  work.dtype = section.choice<DType>("dtype", kDTypes, DType::kFp32, "of the elements");
  work.fold = section.boolean("fold", true, "simulate one rank for all that do the same");
  section.finish();
}

}  // namespace moebius
