#include "workloads/study/placement/placement_moves.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "workloads/routing/random_stream.h"

namespace moebius {
namespace {

using Devices = std::vector<std::int32_t>;
using Moves = std::vector<std::pair<std::int32_t, std::int32_t>>;  // rank, device

class LocalSearch {
 public:
  LocalSearch(const PlacementProblem& problem, std::int64_t most, CommunicationLoads& loads)
      : loads_(loads),
        most_(most),
        stream_(RandomStream::finalise(problem.seed)),
        rank_on_(problem.fabric.num_devices(), kNowhere) {
    std::map<int, Devices> nodes;
    for (const std::int32_t device : problem.free) nodes[problem.fabric.node_of(device)].push_back(device);
    for (auto& [node, devices] : nodes) nodes_.push_back(std::move(devices));
    in_part_ = std::any_of(nodes_.begin(), nodes_.end(),
                           [&](const Devices& devices) { return devices.size() != nodes_.front().size(); });
    for (const Devices& devices : nodes_) free_.insert(free_.end(), devices.begin(), devices.end());
    note();
  }

  std::int64_t run() {
    Best best{loads_.cost().sum(), loads_.device_of_rank()};
    while (tried_ < most_) {
      climb();
      if (loads_.cost().sum() < best.sum * (1 - 1e-9))
        best = {loads_.cost().sum(), loads_.device_of_rank()};
      else if (loads_.device_of_rank() != best.device_of_rank)
        back_to(best);
      if (!shake()) break;
    }
    if (loads_.cost().sum() > best.sum) back_to(best);
    return tried_;
  }

 private:
  struct Best {
    double sum;
    std::vector<std::int32_t> device_of_rank;
  };

  void note() {
    std::fill(rank_on_.begin(), rank_on_.end(), kNowhere);
    const auto& devices = loads_.device_of_rank();
    for (std::size_t rank = 0; rank < devices.size(); ++rank)
      rank_on_[devices[rank]] = static_cast<std::int32_t>(rank);
  }

  void back_to(const Best& best) {
    loads_.place(best.device_of_rank);
    note();
  }

  void add_swap(std::int32_t a, std::int32_t b, Moves& moves) const {
    if (rank_on_[a] != kNowhere) moves.push_back({rank_on_[a], b});
    if (rank_on_[b] != kNowhere) moves.push_back({rank_on_[b], a});
  }

  // What stands on two nodes, place by place.
  Moves exchange_of_nodes(std::size_t a, std::size_t b) const {
    Moves moves;
    if (nodes_[a].size() != nodes_[b].size()) return moves;
    for (std::size_t i = 0; i < nodes_[a].size(); ++i) add_swap(nodes_[a][i], nodes_[b][i], moves);
    return moves;
  }

  Moves exchange_of_devices(std::size_t a, std::size_t b) const {
    Moves moves;
    add_swap(free_[a], free_[b], moves);
    return moves;
  }

  bool keep_if_better(const Moves& moves, double& now) {
    if (moves.empty() || tried_ >= most_) return false;
    ++tried_;
    loads_.move(moves);
    const double then = loads_.cost().sum();
    if (then >= now * (1 - 1e-9)) {
      loads_.undo();
      return false;
    }
    now = then;
    note();
    return true;
  }

  std::vector<std::size_t> shuffled(std::size_t size) {
    std::vector<std::size_t> order(size);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = size; i > 1; --i)
      std::swap(order[i - 1], order[stream_.below(static_cast<std::uint32_t>(i))]);
    return order;
  }

  bool pass(std::size_t size, Moves (LocalSearch::*exchange)(std::size_t, std::size_t) const, double& now) {
    const std::vector<std::size_t> order = shuffled(size);
    bool better = false;
    for (std::size_t i = 0; i < size && tried_ < most_; ++i)
      for (std::size_t j = 0; j < i; ++j)
        better = keep_if_better((this->*exchange)(order[i], order[j]), now) || better;
    return better;
  }

  void climb() {
    double now = loads_.cost().sum();
    bool better = true;
    while (better && tried_ < most_) {
      better = pass(nodes_.size(), &LocalSearch::exchange_of_nodes, now);
      if (!better && in_part_) better = pass(free_.size(), &LocalSearch::exchange_of_devices, now);
    }
  }

  // Three exchanges of nodes that are not asked whether they help.
  bool shake() {
    if (nodes_.size() < 3) return false;
    for (int i = 0; i < 3; ++i) {
      const auto pick = [&] { return stream_.below(static_cast<std::uint32_t>(nodes_.size())); };
      const Moves moves = exchange_of_nodes(pick(), pick());
      ++tried_;
      if (moves.empty()) continue;
      loads_.move(moves);
      note();
    }
    return true;
  }

  CommunicationLoads& loads_;
  std::int64_t most_, tried_ = 0;
  RandomStream stream_;
  std::vector<Devices> nodes_;  // their free devices
  Devices free_;
  bool in_part_ = false;  // nodes are not all free to the same part
  std::vector<std::int32_t> rank_on_;
};

}  // namespace

std::int64_t improve(const PlacementProblem& problem, std::int64_t most, CommunicationLoads& loads) {
  return LocalSearch(problem, most, loads).run();
}

}  // namespace moebius
