#include "workloads/cluster/queue/leaf_traffic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moebius {

namespace {

constexpr int kSteps = 64;         // of a load's distribution
constexpr double kTrickle = 1e-3;  // of its rate gets through, whoever goes first

// Of all others of a kind together: how likely each load is, in steps of `step`, rounded up.
std::vector<double> distribution(const std::vector<LeafSender>& senders, std::size_t which, bool higher,
                                 double& step) {
  const LeafSender& mine = senders[which];
  std::vector<const LeafSender*> others;
  double most = 0;
  for (const LeafSender& other : senders) {
    if (other.run == mine.run || other.busy <= 0) continue;
    if (higher ? other.queue <= mine.queue : other.queue != mine.queue) continue;
    others.push_back(&other);
    most += other.load;
  }
  step = most / kSteps;
  std::vector<double> chance{1};
  for (const LeafSender* other : others) {
    const auto more = static_cast<std::size_t>(std::ceil(other->load / step - 1e-9));
    std::vector<double> next(chance.size() + more, 0);
    for (std::size_t i = 0; i < chance.size(); ++i) {
      next[i] += chance[i] * (1 - other->busy);
      next[i + more] += chance[i] * other->busy;
    }
    chance = std::move(next);
  }
  return chance;
}

}  // namespace

std::vector<double> crossing(const GroupTraffic& traffic, const std::vector<int>& leaf_of, int leaves) {
  std::vector<double> up(leaves, 0);
  const int all = static_cast<int>(leaf_of.size()), stride = traffic.stride;
  if (traffic.pattern == LinkPattern::kChain) {
    std::vector<char> sends(all, 0);  // one way at a time
    for (int i = 0; i + stride < all; ++i)
      if (leaf_of[i] != leaf_of[i + stride]) sends[i] = sends[i + stride] = 1;
    for (int i = 0; i < all; ++i) up[leaf_of[i]] += sends[i];
    return up;
  }
  const int block = traffic.nodes * stride;
  for (int first = 0; first < all; first += block) {
    for (int start = first; start < std::min(first + stride, all); ++start) {
      std::vector<int> members;
      for (int i = start; i < std::min(first + block, all); i += stride) members.push_back(leaf_of[i]);
      const std::size_t n = members.size();
      if (n < 2) continue;
      for (std::size_t i = 0; i < n; ++i) {
        if (traffic.pattern == LinkPattern::kRing) {
          up[members[i]] += members[i] != members[(i + 1) % n] ? 1 : 0;
        } else {
          const auto near = std::count(members.begin(), members.end(), members[i]);
          up[members[i]] +=
              static_cast<double>(static_cast<std::ptrdiff_t>(n) - near) / static_cast<double>(n - 1);
        }
      }
    }
  }
  return up;
}

double time_beside(const std::vector<LeafSender>& senders, std::size_t which, double capacity) {
  const LeafSender& mine = senders[which];
  double all = 0;
  for (const LeafSender& sender : senders)
    if (sender.run != mine.run && sender.queue >= mine.queue) all += sender.load;
  if (mine.load <= 0 || all == 0 || mine.load + all <= capacity) return 1;
  double step_before = 0, step_beside = 0, rate = 0;
  const std::vector<double> before = distribution(senders, which, true, step_before);
  const std::vector<double> beside = distribution(senders, which, false, step_beside);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double left = std::max(0.0, capacity - static_cast<double>(i) * step_before);
    for (std::size_t j = 0; j < beside.size(); ++j) {
      const double load = mine.load + static_cast<double>(j) * step_beside;
      rate += before[i] * beside[j] * std::min(1.0, left / load);
    }
  }
  const double alone = std::min(1.0, capacity / mine.load);
  return std::max(1.0, alone / std::max(rate, kTrickle * alone));
}

}  // namespace moebius
