#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {
namespace {

class Turns {
 public:
  Turns(const std::vector<std::vector<Pass>>& passes, const StagePlacement& placement)
      : passes_(passes), placement_(placement), next_(passes.size(), 0) {}

  // What one pass makes possible may be issued in the same turn, by a rank before it too.
  std::vector<int> turn() {
    std::vector<bool> issued(passes_.size(), false);
    bool found = true;
    while (found) {
      found = false;
      for (std::size_t rank = 0; rank < passes_.size(); ++rank) {
        if (issued[rank] || next_[rank] == passes_[rank].size() || !can_issue(static_cast<int>(rank)))
          continue;
        order_.push_back({static_cast<int>(rank), passes_[rank][next_[rank]++]});
        mark(order_.back().rank, order_.back().pass);
        issued[rank] = found = true;
      }
    }
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < issued.size(); ++rank) {
      if (issued[rank]) ranks.push_back(static_cast<int>(rank));
    }
    CHECK(!ranks.empty(), fmt::format("no pass can be issued after {}", order_.size()));
    return ranks;
  }

  std::vector<RankPass> take_order() { return std::move(order_); }

  bool done() const {
    for (std::size_t rank = 0; rank < passes_.size(); ++rank) {
      if (next_[rank] < passes_[rank].size()) return false;
    }
    return true;
  }

 private:
  // Direction, stage, microbatch. Chunks of one direction are told apart by their stages.
  using Work = std::tuple<int, int, int>;
  Work work(int rank, const PassPart& part) const {
    return {placement_.both_ways() ? part.chunk : 0, placement_.stage_of(rank, part.chunk), part.microbatch};
  }

  bool can_issue(int rank) const {
    const Pass& pass = passes_[rank][next_[rank]];
    if (pass.kind == PassKind::kOptimizer) return true;
    if (pass.kind == PassKind::kBackwardWeight) return backward_.count(work(rank, pass.part)) > 0;
    if (pass.runs_forward() && !forward_can(work(rank, pass.part))) return false;
    return !pass.runs_backward() || backward_can(work(rank, pass.backward_part()));
  }

  bool forward_can(Work work) const {
    if (std::get<1>(work)-- == 0) return true;
    return forward_.count(work) > 0;
  }

  bool backward_can(Work work) const {
    if (forward_.count(work) == 0) return false;
    if (++std::get<1>(work) == placement_.stages()) return true;
    return backward_.count(work) > 0;
  }

  void mark(int rank, const Pass& pass) {
    if (pass.kind == PassKind::kOptimizer) return;
    if (pass.runs_forward()) forward_.insert(work(rank, pass.part));
    if (pass.runs_backward()) backward_.insert(work(rank, pass.backward_part()));
  }

  const std::vector<std::vector<Pass>>& passes_;
  const StagePlacement& placement_;
  std::vector<std::size_t> next_;
  std::set<Work> forward_, backward_;  // issued
  std::vector<RankPass> order_;
};

}  // namespace

std::vector<std::vector<int>> issue_turns(const std::vector<std::vector<Pass>>& passes,
                                          const StagePlacement& placement) {
  Turns turns(passes, placement);
  std::vector<std::vector<int>> all;
  while (!turns.done()) all.push_back(turns.turn());
  return all;
}

std::vector<RankPass> run_order(const std::vector<std::vector<Pass>>& passes,
                                const StagePlacement& placement) {
  Turns turns(passes, placement);
  while (!turns.done()) turns.turn();
  return turns.take_order();
}

}  // namespace moebius
