// Which node is whose: a job's, free, or being repaired.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/units.h"

namespace moebius {

class NodePool {
 public:
  explicit NodePool(int nodes) : owner_(nodes, kFree), since_(nodes), free_(nodes), least_free_(nodes) {}

  int size() const { return static_cast<int>(owner_.size()); }
  int free() const { return free_; }
  int least_free() const { return least_free_; }
  bool down(int node) const { return owner_[node] == kDown; }
  bool owned(int node) const { return owner_[node] >= 0; }
  int owner(int node) const { return owner_[node]; }  // a job; of an owned one

  // The free node with the lowest number, which there is.
  int give(int job, Time now);
  void give_back(int node, Time now);  // an owned one
  void take_down(int node, Time now);  // one that is not down
  void repair(int node, Time now);
  // Seconds of nodes so far; of nodes that are owned or down until they change, or until finish().
  double busy() const { return busy_; }
  double broken() const { return broken_; }
  void finish(Time now);

 private:
  static constexpr int kFree = -1, kDown = -2;
  void leave(int node, Time now);

  std::vector<int> owner_;
  std::vector<Time> since_;
  int free_, least_free_, first_free_ = 0;
  double busy_ = 0, broken_ = 0;
};

}  // namespace moebius
