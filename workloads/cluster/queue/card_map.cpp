#include "workloads/cluster/queue/card_map.h"

#include <algorithm>
#include <numeric>

#include "hw/error.h"

namespace moebius {

std::vector<int> spares_of_pools(const std::vector<int>& nodes, int spares) {
  const std::int64_t all = std::accumulate(nodes.begin(), nodes.end(), std::int64_t{0});
  std::vector<int> kept, order;
  int left = spares;
  for (const int of : nodes) {
    order.push_back(static_cast<int>(order.size()));
    kept.push_back(static_cast<int>(std::int64_t{spares} * of / all));
    left -= kept.back();
  }
  const auto remainder = [&](int pool) { return std::int64_t{spares} * nodes[pool] % all; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return remainder(a) > remainder(b); });
  for (int i = 0; i < left; ++i) ++kept[order[i]];
  return kept;
}

CardMap::CardMap(const CardPool& pool, PlacementRule rule)
    : pool_(pool),
      rule_(rule),
      free_(pool.nodes, pool.cards),
      down_(pool.nodes, 0),
      free_in_leaf_((pool.nodes + pool.nodes_per_leaf - 1) / pool.nodes_per_leaf, 0),
      free_cards_(pool.all_cards()),
      free_nodes_(pool.nodes) {
  for (int node = 0; node < pool.nodes; ++node) ++free_in_leaf_[leaf_of(node)];
}

std::int64_t CardMap::spare_cards() const {
  return std::int64_t{std::min(pool_.spares, free_nodes_)} * pool_.cards;
}

int CardMap::whole_nodes(bool spares) const {
  return free_nodes_ - (spares ? 0 : std::min(pool_.spares, free_nodes_));
}

bool CardMap::can_place(int cards, bool spares) const {
  if (cards >= pool_.cards) return cards % pool_.cards == 0 && cards / pool_.cards <= whole_nodes(spares);
  return node_for(cards, spares) >= 0;
}

// A node that is begun already, before one that is whole: packed takes the fullest, spread the emptiest.
int CardMap::node_for(int cards, bool spares) const {
  if (free_cards_ < cards) return -1;
  const bool may_begin = whole_nodes(spares) > 0;
  int best = -1;
  for (int node = 0; node < pool_.nodes; ++node) {
    const int free = free_[node];
    if (free < cards || (free == pool_.cards && !may_begin)) continue;
    if (best < 0 || (rule_ == PlacementRule::kPacked && free < free_[best]) ||
        (rule_ == PlacementRule::kSpread && free > free_[best]))
      best = node;
    if (rule_ == PlacementRule::kFirst) break;
  }
  return best;
}

void CardMap::take(int node, int cards) {
  if (free_[node] == pool_.cards) --free_nodes_, --free_in_leaf_[leaf_of(node)];
  free_[node] -= cards;
  free_cards_ -= cards;
}

std::vector<NodeCards> CardMap::place(int cards, bool spares) {
  CHECK(cards > 0 && can_place(cards, spares), "a place for a job");
  if (cards >= pool_.cards) return place_whole(cards / pool_.cards);
  const int node = node_for(cards, spares);
  take(node, cards);
  return {{node, cards}};
}

// Leaf after leaf. Packed: the leaf with the fewest free nodes that holds all that is still wanted, else the
// one with the most. Spread: a node from the emptiest leaf each time.
std::vector<NodeCards> CardMap::place_whole(int nodes) {
  std::vector<NodeCards> got;
  while (nodes > 0) {
    int best = -1;
    for (int leaf = 0; leaf < leaves(); ++leaf) {
      const int free = free_in_leaf_[leaf];
      if (free == 0) continue;
      if (best < 0) {
        best = leaf;
        if (rule_ == PlacementRule::kFirst) break;
        continue;
      }
      const int most = free_in_leaf_[best];
      const bool holds = rule_ == PlacementRule::kPacked && free >= nodes;
      if (holds ? most < nodes || free < most : most < nodes && free > most) best = leaf;
      if (rule_ == PlacementRule::kSpread && free > most) best = leaf;
    }
    int wanted = rule_ == PlacementRule::kSpread ? 1 : std::min(nodes, free_in_leaf_[best]);
    for (int node = best * pool_.nodes_per_leaf; wanted > 0; ++node) {
      if (free_[node] != pool_.cards) continue;
      take(node, pool_.cards);
      got.push_back({node, pool_.cards});
      --wanted, --nodes;
    }
  }
  return got;
}

void CardMap::take_beside(NodeCards& held, int cards) {
  CHECK(cards <= free_[held.node], "free cards of the same node");
  take(held.node, cards);
  held.cards += cards;
}

void CardMap::give_back(const NodeCards& held) {
  if (down(held.node)) return;
  free_[held.node] += held.cards;
  CHECK(free_[held.node] <= pool_.cards, "cards that were taken");
  free_cards_ += held.cards;
  if (free_[held.node] == pool_.cards) ++free_nodes_, ++free_in_leaf_[leaf_of(held.node)];
}

std::vector<NodeCards> CardMap::loose_first(std::vector<NodeCards> held) const {
  std::vector<int> together(free_in_leaf_.size(), 0);
  for (const NodeCards& node : held) ++together[leaf_of(node.node)];
  std::stable_sort(held.begin(), held.end(), [&](const NodeCards& a, const NodeCards& b) {
    const int la = leaf_of(a.node), lb = leaf_of(b.node);
    return together[la] != together[lb] ? together[la] < together[lb] : la < lb;
  });
  return held;
}

void CardMap::take_down(int node) {
  CHECK(!down(node), "a node that is up");
  take(node, free_[node]);
  down_[node] = 1;
  ++nodes_down_;
}

void CardMap::repair(int node) {
  CHECK(down(node), "a node that is down");
  down_[node] = 0;
  --nodes_down_;
  give_back({node, pool_.cards});
}

}  // namespace moebius
