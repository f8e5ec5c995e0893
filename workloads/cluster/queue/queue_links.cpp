// Who disturbs whom on the uplinks of leaves.
#include <algorithm>
#include <array>
#include <numeric>

#include "workloads/cluster/queue/queue_run.h"

namespace moebius {

// By leaf of the pool, what the jobs that stand on several send up.
std::vector<std::vector<LeafSender>> QueueRun::senders_of(int pool) const {
  const CardMap& map = maps_[pool];
  std::vector<std::vector<LeafSender>> senders(map.leaves());
  std::vector<int> leaf_of;
  for (const int r : holders_[pool]) {
    const QueuedRun& run = runs_[r];
    const ShapeStep& step = in_.steps.at(run.shape, pool, run.size);
    if (!run.holds() || run.nodes.size() < 2 || step.between.empty()) continue;
    leaf_of.clear();
    for (const NodeCards& held : run.nodes) leaf_of.push_back(map.leaf_of(held.node));
    if (std::all_of(leaf_of.begin(), leaf_of.end(), [&](int leaf) { return leaf == leaf_of[0]; })) continue;
    for (const GroupTraffic& traffic : step.between) {
      const std::vector<double> up = crossing(traffic, leaf_of, map.leaves());
      for (int leaf = 0; leaf < map.leaves(); ++leaf) {
        if (up[leaf] > 0)
          senders[leaf].push_back({r, up[leaf], traffic.busy, traffic.exposed,
                                   in_.plan.queues[run.queue].network, traffic.pattern});
      }
    }
  }
  return senders;
}

// Of each kind of its traffic the leaf where it takes longest decides; what is hidden stays hidden.
void QueueRun::disturb_neighbours(int pool) {
  if (pool < 0) return;
  const CardPool& of = maps_[pool].pool();
  const double capacity = of.nodes_per_leaf / of.oversubscription;
  std::vector<std::array<double, kNumLinkPatterns>> more(holders_[pool].size());
  const auto index_in = [&](int r) {
    return std::lower_bound(holders_[pool].begin(), holders_[pool].end(), r) - holders_[pool].begin();
  };
  for (const std::vector<LeafSender>& leaf : senders_of(pool)) {
    double all = 0;
    for (const LeafSender& sender : leaf) all += sender.load;
    if (all <= capacity) continue;  // whoever sends, the uplinks carry it
    for (std::size_t i = 0; i < leaf.size(); ++i) {
      const double longer = time_beside(leaf, i, capacity);
      course_.longest_beside = std::max(course_.longest_beside, longer);
      double& most = more[index_in(leaf[i].run)][static_cast<int>(leaf[i].pattern)];
      most = std::max(most, leaf[i].exposed * (longer - 1));
    }
  }
  for (std::size_t i = 0; i < more.size(); ++i) {
    QueuedRun& run = runs_[holders_[pool][i]];
    if (!run.holds()) continue;
    const double disturbed = std::accumulate(more[i].begin(), more[i].end(), 1.0);
    if (disturbed == run.disturbed) continue;
    if (run.stage == RunStage::kRunning) book(run);
    run.disturbed = disturbed;
    set_speed(run);
  }
}

}  // namespace moebius
