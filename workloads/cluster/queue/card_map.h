// Which cards of a pool are free, node by node and leaf by leaf, and which of them a job gets. Jobs smaller
// than a node share nodes; larger ones get whole nodes.
#pragma once

#include <vector>

#include "workloads/cluster/queue/queue_plan.h"

namespace moebius {

struct NodeCards {
  int node = 0, cards = 0;
};

// Of `spares` nodes those that each pool keeps back, at most all of its own: in proportion to its nodes,
// rounded so that none is lost, the largest remainders up.
std::vector<int> spares_of_pools(const std::vector<int>& nodes, int spares);

class CardMap {
 public:
  CardMap(const CardPool& pool, PlacementRule rule);

  const CardPool& pool() const { return pool_; }
  int leaf_of(int node) const { return node / pool_.nodes_per_leaf; }
  int leaves() const { return static_cast<int>(free_in_leaf_.size()); }
  bool down(int node) const { return down_[node] != 0; }
  int nodes_down() const { return nodes_down_; }

  std::int64_t free_cards() const { return free_cards_; }  // spares too
  std::int64_t whole_free_cards() const { return std::int64_t{whole_nodes(false)} * pool_.cards; }
  std::int64_t spare_cards() const;  // of them, kept back
  // Whether so many cards can stand together; `spares`: of the nodes kept back too.
  bool can_place(int cards, bool spares = false) const;
  // Takes them; they must be there.
  std::vector<NodeCards> place(int cards, bool spares = false);
  // Free on a node of which a job has a part, and takes of that: it stays on one node.
  int free_beside(const NodeCards& held) const { return free_[held.node]; }
  void take_beside(NodeCards& held, int cards);
  void give_back(const NodeCards& held);
  // Of a job's nodes, in the order in which it should give some back: those that share a leaf with the fewest
  // of its others first.
  std::vector<NodeCards> loose_first(std::vector<NodeCards> held) const;

  // All its cards go: whoever holds some loses them, and giving them back does nothing until it is repaired.
  void take_down(int node);
  void repair(int node);  // nobody holds cards of it

 private:
  int whole_nodes(bool spares) const;
  std::vector<NodeCards> place_whole(int nodes);
  int node_for(int cards, bool spares) const;
  void take(int node, int cards);

  CardPool pool_;
  PlacementRule rule_;
  std::vector<int> free_;          // cards, by node
  std::vector<char> down_;         // by node
  std::vector<int> free_in_leaf_;  // whole nodes
  std::int64_t free_cards_ = 0;
  int free_nodes_ = 0, nodes_down_ = 0;
};

}  // namespace moebius
