#include "workloads/serving/balancing/greedy_placement.h"

#include <algorithm>
#include <numeric>

namespace moebius {
namespace {

struct Change {
  std::int32_t slot = -1, other = -1;  // of the fullest rank, and of the other one
  bool repeats = false;                // the other slot takes the same expert; otherwise both change places
  double gain = 0;                     // by which the fullest rank's load falls, for each expert moved
};

class Betterment {
 public:
  Betterment(const SlotExperts& now, const std::vector<double>& loads, int ranks)
      : slots_(now),
        loads_(loads),
        of_rank_(static_cast<std::int32_t>(now.size()) / ranks),
        replicas_(loads.size(), 0),
        ranks_(ranks, 0.0),
        mean_(std::accumulate(loads.begin(), loads.end(), 0.0) / ranks) {
    for (const std::int32_t expert : slots_) ++replicas_[expert];
    sum_up();
  }

  bool advance(const MoveWorth& worth) {
    if (mean_ <= 0) return false;
    const double before = *std::max_element(ranks_.begin(), ranks_.end());
    const Change change = best();
    if (change.slot < 0) return false;
    const SlotExperts kept = slots_;
    const std::vector<std::int32_t> replicas = replicas_;
    apply(change);
    sum_up();
    const double fallen = (before - *std::max_element(ranks_.begin(), ranks_.end())) / mean_;
    if (fallen > 1e-9 && worth.saved * fallen >= worth.moved * moves(change)) return true;
    slots_ = kept;
    replicas_ = replicas;
    return false;
  }
  const SlotExperts& slots() const { return slots_; }

 private:
  static int moves(const Change& change) { return change.repeats ? 1 : 2; }
  double load(std::int32_t slot) const { return loads_[slots_[slot]] / replicas_[slots_[slot]]; }

  void sum_up() {
    std::fill(ranks_.begin(), ranks_.end(), 0.0);
    of_expert_.assign(loads_.size(), {});
    for (std::int32_t s = 0; s < static_cast<std::int32_t>(slots_.size()); ++s) {
      ranks_[s / of_rank_] += load(s);
      of_expert_[slots_[s]].push_back(s);
    }
  }

  // By how much the largest load of the ranks that change falls below the fullest one's.
  double gain_of(const Change& change, std::int32_t fullest) const {
    const std::int32_t rank = change.other / of_rank_;
    if (change.repeats) return (ranks_[fullest] - fullest_repeated(change, fullest)) / moves(change);
    const double own = ranks_[fullest] + load(change.other) - load(change.slot),
                 other = ranks_[rank] + load(change.slot) - load(change.other);
    return (ranks_[fullest] - std::max(own, other)) / moves(change);
  }

  // The expert's load falls on one replica more, that of the one which goes on one fewer, wherever they
  // stand.
  double fullest_repeated(const Change& change, std::int32_t fullest) const {
    const std::int32_t comes = slots_[change.slot], goes = slots_[change.other],
                       rank = change.other / of_rank_;
    const double part = loads_[comes] / (replicas_[comes] + 1), less = load(change.slot) - part,
                 more = loads_[goes] / (replicas_[goes] - 1) - load(change.other);
    const auto load_of = [&](std::int32_t at) {
      double sum = ranks_[at] + (at == rank ? part - load(change.other) : 0);
      for (const std::int32_t slot : of_expert_[goes])
        if (slot != change.other && slot / of_rank_ == at) sum += more;
      for (const std::int32_t slot : of_expert_[comes])
        if (slot / of_rank_ == at) sum -= less;
      return sum;
    };
    double most = std::max(load_of(fullest), load_of(rank));
    for (const std::int32_t slot : of_expert_[goes])
      if (slot != change.other) most = std::max(most, load_of(slot / of_rank_));
    return most;
  }

  Change best() const {
    const auto fullest =
        static_cast<std::int32_t>(std::max_element(ranks_.begin(), ranks_.end()) - ranks_.begin());
    Change best;
    for (std::int32_t slot = fullest * of_rank_; slot < (fullest + 1) * of_rank_; ++slot) {
      for (std::int32_t other = 0; other < static_cast<std::int32_t>(slots_.size()); ++other) {
        if (other / of_rank_ == fullest || slots_[other] == slots_[slot]) continue;
        for (const bool repeats : {false, true}) {
          if (repeats && replicas_[slots_[other]] == 1) continue;
          Change change{slot, other, repeats, 0};
          change.gain = gain_of(change, fullest);
          if (change.gain > best.gain) best = change;
        }
      }
    }
    return best;
  }

  void apply(const Change& change) {
    if (!change.repeats) {
      std::swap(slots_[change.slot], slots_[change.other]);
      return;
    }
    --replicas_[slots_[change.other]];
    ++replicas_[slots_[change.slot]];
    slots_[change.other] = slots_[change.slot];
  }

  SlotExperts slots_;
  const std::vector<double>& loads_;
  std::int32_t of_rank_;
  std::vector<std::int32_t> replicas_;
  std::vector<double> ranks_;
  std::vector<std::vector<std::int32_t>> of_expert_;  // slots
  double mean_;
};

}  // namespace

SlotExperts better_placement(const SlotExperts& now, const std::vector<double>& expert_loads, int ranks,
                             const MoveWorth& worth) {
  Betterment betterment(now, expert_loads, ranks);
  for (std::size_t i = 0; i < now.size() && betterment.advance(worth); ++i) continue;
  return betterment.slots();
}

}  // namespace moebius
