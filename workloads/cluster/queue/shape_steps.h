// How fast a job of a shape runs on so many cards of a pool, as simulated: one step of training, or the
// tokens of a replica.
#pragma once

#include <string>
#include <vector>

#include "workloads/cluster/queue/leaf_traffic.h"
#include "workloads/cluster/queue/queue_plan.h"

namespace moebius {

struct ShapeStep {
  double seconds = 0;  // of a step; inference: of a million tokens. 0: it does not run there
  double tokens_per_s = 0;
  double computing = 1;                    // share of the time in which clocks count
  double exposed = 0;                      // share in which it waits for messages between nodes
  double network = 0;                      // share in which such are under way, hidden or not
  std::vector<GroupTraffic> between = {};  // of these, by pattern
  std::string why = {};                    // it does not run there
};

// Times that it takes as long at a clock, of the highest.
inline double longer_at(const ShapeStep& step, double clock) {
  return step.computing / clock + 1 - step.computing;
}

// What a neighbour on the same links leaves of a network: while it is busy, for that share of the time, an
// operation takes `rivalry` (from 1) times as long; the rest of the time it has the links to itself. In (0,
// 1]. One of a strictly better priority leaves nothing while it is busy: 1 - busy.
inline double network_left(double busy, double rivalry) {
  return 1 - busy * (1 - 1 / rivalry);
}

class ShapeSteps {
 public:
  ShapeSteps() = default;
  explicit ShapeSteps(const QueuePlan& plan);

  ShapeStep& at(int shape, int pool, int size) { return all_[index(shape, pool, size)]; }
  const ShapeStep& at(int shape, int pool, int size) const { return all_[index(shape, pool, size)]; }
  bool runs(int shape, int pool, int size) const { return at(shape, pool, size).seconds > 0; }
  // The first of the shape's pools on which this size runs; -1: none.
  int reference(const JobShape& of, int shape, int size) const;

 private:
  int index(int shape, int pool, int size) const { return first_[shape] + pool * sizes_[shape] + size; }
  std::vector<int> first_, sizes_;
  std::vector<ShapeStep> all_;
};

}  // namespace moebius
