#include "workloads/study/placement/placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/study/placement/block_search.h"
#include "workloads/study/placement/device_orders.h"
#include "workloads/study/placement/placement_moves.h"
#include "workloads/study/placement/volume_partition.h"

namespace moebius {
namespace {

using Devices = std::vector<std::int32_t>;

// Of one local search: estimates times the square of the ranks, whose groups each of them looks at again.
constexpr std::int64_t kEstimates = 1 << 22;
constexpr std::int64_t kExactEstimates = 4000;
constexpr std::size_t kStarts = 3;

PartSizes sizes_of(const Fabric& fabric, const Devices& devices) {
  PartSizes sizes;
  int last_node = -1, last_leaf = -1;
  for (const std::int32_t device : devices) {
    const Fabric::Standing standing = fabric.standing(device);
    if (standing.node != last_node) {
      const int leaf = fabric.standing(device - standing.local).leaf;
      if (leaf != last_leaf) sizes.leaves.push_back(0);
      ++sizes.leaves.back();
      sizes.nodes.push_back(0);
      last_leaf = leaf;
      last_node = standing.node;
    }
    ++sizes.nodes.back();
  }
  return sizes;
}

Devices laid_over(const Devices& rank_order, const Devices& devices) {
  Devices device_of_rank(rank_order.size());
  for (std::size_t i = 0; i < rank_order.size(); ++i) device_of_rank[rank_order[i]] = devices[i];
  return device_of_rank;
}

// Ranks that should stand in one node: eight, and those of every kind of group.
std::vector<int> units_of(const PlacementProblem& problem) {
  std::set<int> sizes{8, problem.tp};
  for (const RankExchange& exchange : problem.exchanges)
    sizes.insert(static_cast<int>(exchange.ranks.size()));
  return {sizes.rbegin(), sizes.rend()};
}

class PlacementSearch {
 public:
  PlacementSearch(const PlacementProblem& problem, int most)
      : problem_(problem),
        most_(static_cast<std::size_t>(most)),
        loads_(problem.fabric, problem.exchanges, problem.ranks) {}

  Placements run() {
    CHECK(static_cast<int>(problem_.free.size()) >= problem_.ranks,
          fmt::format("{} ranks on {} devices", problem_.ranks, problem_.free.size()));
    lay_out();
    Placements found;
    found.naive = all_.front();
    sort();
    const std::size_t starts = std::min(kStarts, all_.size());
    for (std::size_t i = 0; i < starts; ++i) climb_from(all_[i]);
    sort();
    if (const auto exact = search_blocks(problem_, all_.front(), kExactEstimates, loads_)) {
      tried_ += exact->tried;
      add(exact->best);
      sort();
      found.exact = true;
    }
    found.tried = tried_;
    found.best = unlike();
    return found;
  }

 private:
  void add(PlacedRanks placed) {
    const auto same = [&](const PlacedRanks& known) { return known.device_of_rank == placed.device_of_rank; };
    if (std::none_of(all_.begin(), all_.end(), same)) all_.push_back(std::move(placed));
  }

  // The best, and behind it others that are not all but the same: with estimates as near as these a few ranks
  // have changed places.
  std::vector<PlacedRanks> unlike() {
    constexpr double kTwin = 1e-3;
    std::vector<PlacedRanks> best;
    for (PlacedRanks& placed : all_) {
      if (best.size() == most_) break;
      if (best.empty() || placed.cost.sum() > best.back().cost.sum() * (1 + kTwin))
        best.push_back(std::move(placed));
    }
    return best;
  }

  void lay_out() {
    Devices numbered(problem_.ranks);
    std::iota(numbered.begin(), numbered.end(), 0);
    for (const DeviceOrder& order :
         device_orders(problem_.fabric, problem_.free, problem_.ranks, units_of(problem_))) {
      add(estimated(order.how, laid_over(numbered, order.devices)));
      const Devices by_volume =
          order_by_volume(problem_.exchanges, problem_.ranks, sizes_of(problem_.fabric, order.devices));
      add(estimated(order.how + ", ranks by volume", laid_over(by_volume, order.devices)));
    }
  }

  PlacedRanks estimated(const std::string& how, const Devices& device_of_rank) {
    loads_.place(device_of_rank);
    ++tried_;
    return {how, device_of_rank, loads_.cost()};
  }

  void climb_from(const PlacedRanks& start) {
    loads_.place(start.device_of_rank);
    const std::string how = start.how + ", improved";
    tried_ += improve(
        problem_, std::clamp<std::int64_t>(kEstimates / problem_.ranks / problem_.ranks, 64, 1500), loads_);
    add({how, loads_.device_of_rank(), loads_.cost()});
  }

  // By the slowest wires, then by all.
  void sort() {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const PlacedRanks& a, const PlacedRanks& b) { return a.cost.sum() < b.cost.sum(); });
  }

  const PlacementProblem& problem_;
  const std::size_t most_;
  CommunicationLoads loads_;
  std::vector<PlacedRanks> all_;
  std::int64_t tried_ = 0;
};

}  // namespace

Placements find_placements(const PlacementProblem& problem, int most) {
  return PlacementSearch(problem, most).run();
}

}  // namespace moebius
