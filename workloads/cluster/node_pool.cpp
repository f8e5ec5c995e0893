#include "workloads/cluster/node_pool.h"

#include <algorithm>

#include "hw/error.h"

namespace moebius {

// What the node was until now is booked.
void NodePool::leave(int node, Time now) {
  if (owner_[node] >= 0) busy_ += (now - since_[node]).seconds();
  if (owner_[node] == kDown) broken_ += (now - since_[node]).seconds();
  if (owner_[node] == kFree) least_free_ = std::min(least_free_, --free_);
  since_[node] = now;
}

int NodePool::give(int job, Time now) {
  while (first_free_ < size() && owner_[first_free_] != kFree) ++first_free_;
  CHECK(first_free_ < size(), "a free node");
  leave(first_free_, now);
  owner_[first_free_] = job;
  return first_free_;
}

void NodePool::give_back(int node, Time now) {
  leave(node, now);
  owner_[node] = kFree;
  ++free_;
  first_free_ = std::min(first_free_, node);
}

void NodePool::take_down(int node, Time now) {
  leave(node, now);
  owner_[node] = kDown;
}

void NodePool::repair(int node, Time now) {
  CHECK(down(node), "a node that is down");
  give_back(node, now);
}

void NodePool::finish(Time now) {
  for (int node = 0; node < size(); ++node) {
    if (owner_[node] != kFree) leave(node, now);
  }
}

}  // namespace moebius
