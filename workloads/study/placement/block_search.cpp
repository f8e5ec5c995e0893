#include "workloads/study/placement/block_search.h"

#include <algorithm>
#include <map>
#include <set>

namespace moebius {
namespace {

using Devices = std::vector<std::int32_t>;

struct FreeNode {
  Devices devices;
  int leaf = 0;
  bool taken = false;
};

std::vector<FreeNode> free_nodes(const PlacementProblem& problem) {
  std::map<int, FreeNode> nodes;
  for (const std::int32_t device : problem.free) {
    FreeNode& node = nodes[problem.fabric.node_of(device)];
    if (node.devices.empty()) node.leaf = problem.fabric.standing(device).leaf;
    node.devices.push_back(device);
  }
  std::vector<FreeNode> all;
  for (auto& [number, node] : nodes) all.push_back(std::move(node));
  return all;
}

// Of each node in use the ranks on it, in the order of their devices.
std::vector<Devices> blocks_of(const PlacementProblem& problem, const PlacedRanks& start) {
  std::map<std::int32_t, std::int32_t> rank_on;
  for (std::size_t rank = 0; rank < start.device_of_rank.size(); ++rank)
    rank_on[start.device_of_rank[rank]] = static_cast<std::int32_t>(rank);
  std::map<int, Devices> blocks;
  for (const auto& [device, rank] : rank_on) blocks[problem.fabric.node_of(device)].push_back(rank);
  std::vector<Devices> all;
  for (auto& [node, ranks] : blocks) all.push_back(std::move(ranks));
  return all;
}

class Search {
 public:
  Search(std::vector<FreeNode> nodes, std::vector<Devices> blocks, std::int64_t most,
         CommunicationLoads& loads)
      : nodes_(std::move(nodes)), blocks_(std::move(blocks)), most_(most), loads_(loads) {}

  std::optional<BlockSearch> run(const PlacedRanks& start) {
    best_ = start;
    standing_.assign(start.device_of_rank.size(), kNowhere);
    loads_.place(standing_);
    descend(0);
    if (tried_ >= most_) return std::nullopt;
    return BlockSearch{best_, tried_};
  }

 private:
  void stand(std::size_t block, const FreeNode* node) {
    std::vector<std::pair<std::int32_t, std::int32_t>> moves;
    for (std::size_t i = 0; i < blocks_[block].size(); ++i)
      moves.push_back({blocks_[block][i], node == nullptr ? kNowhere : node->devices[i]});
    loads_.move(moves);
  }

  void descend(std::size_t block) {
    if (block == blocks_.size()) {
      const PlacementCost cost = loads_.cost();
      const bool even = cost.seconds < best_.cost.seconds * (1 + 1e-12) && cost.mean < best_.cost.mean;
      if (cost.seconds < best_.cost.seconds * (1 - 1e-12) || even)
        best_ = {"all ways to lay its blocks over nodes", loads_.device_of_rank(), cost};
      return;
    }
    std::set<int> looked_at;  // leaves, by an empty node of theirs
    for (FreeNode& node : nodes_) {
      if (node.taken || !looked_at.insert(node.leaf).second) continue;
      if (++tried_ >= most_) return;
      node.taken = true;
      stand(block, &node);
      if (loads_.cost().seconds <= best_.cost.seconds) descend(block + 1);
      stand(block, nullptr);
      node.taken = false;
    }
  }

  std::vector<FreeNode> nodes_;
  std::vector<Devices> blocks_;
  std::int64_t most_, tried_ = 0;
  CommunicationLoads& loads_;
  Devices standing_;
  PlacedRanks best_;
};

}  // namespace

std::optional<BlockSearch> search_blocks(const PlacementProblem& problem, const PlacedRanks& start,
                                         std::int64_t most, CommunicationLoads& loads) {
  std::vector<FreeNode> nodes = free_nodes(problem);
  std::vector<Devices> blocks = blocks_of(problem, start);
  const std::size_t size = nodes.front().devices.size();
  const bool whole =
      std::all_of(nodes.begin(), nodes.end(),
                  [&](const FreeNode& node) { return node.devices.size() == size; }) &&
      std::all_of(blocks.begin(), blocks.end(), [&](const Devices& block) { return block.size() == size; });
  if (!whole || blocks.size() > kMostExactBlocks) return std::nullopt;
  return Search(std::move(nodes), std::move(blocks), most, loads).run(start);
}

}  // namespace moebius
