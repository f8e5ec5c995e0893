#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"

#include "workloads/training/pipeline/pipeline_orders.h"

namespace moebius {

std::vector<Pass> zero_bubble_h1(const PipelineSpec& spec, int rank) {
  const int n = spec.microbatches;
  const int ahead = std::min(spec.ranks - rank - 1, n);
  std::vector<Pass> passes;
  const auto run = [&](PassKind kind, int microbatch) {
    if (microbatch >= 0 && microbatch < n) passes.push_back({kind, {0, microbatch}});
  };
  for (int i = 0; i < n + ahead; ++i) {
    run(PassKind::kForward, i);
    run(PassKind::kBackwardInput, i - ahead);
    run(PassKind::kBackwardWeight, i - ahead - rank);
  }
  for (int i = n - rank; i < n; ++i) run(PassKind::kBackwardWeight, i);
  return passes;
}

namespace {

// Who is preferred where a rank may choose, and for how long a rank that could only run weights waits for a
// pass that comes sooner, in parts of what the weights take (Qi et al., section 3: weights fill gaps).
struct VRules {
  std::array<Pass, 6> preference;
  double patience = 0;
};

// Runs the V on a clock of its own: each rank takes what can run when it is free, by fixed rules.
class VClock {
 public:
  VClock(const PipelineSpec& spec, const VRules& rules)
      : ranks_(spec.ranks),
        microbatches_(spec.microbatches),
        placement_(spec.kind, spec.ranks, 2),
        seconds_(spec.seconds),
        rules_(rules),
        forwards_(2 * ranks_),
        backwards_(2 * ranks_),
        weights_(2 * ranks_),
        running_(ranks_),
        ends_(ranks_, 0),
        passes_(ranks_) {
    if (seconds_.empty()) seconds_.resize(2 * ranks_);
  }

  void run() {
    const std::size_t all = std::size_t{6} * microbatches_ * ranks_;
    for (int rank = 0; rank < ranks_; ++rank) may_start_.insert(rank);
    while (started_ < all) {
      for (const int rank : std::exchange(may_start_, {})) {
        if (!running_[rank]) start(rank);
      }
      end_next();
    }
    now_ = *std::max_element(ends_.begin(), ends_.end());
  }

  double seconds() const { return now_; }
  std::vector<std::vector<Pass>> take() { return std::move(passes_); }

 private:
  int& done(PassKind kind, int stage) {
    return kind == PassKind::kForward         ? forwards_[stage]
           : kind == PassKind::kBackwardInput ? backwards_[stage]
                                              : weights_[stage];
  }
  int stage_of(int rank, const Pass& pass) const { return placement_.stage_of(rank, pass.part.chunk); }
  int rank_of(int stage) const { return stage < ranks_ ? stage : 2 * ranks_ - 1 - stage; }

  double duration(PassKind kind, int stage) const {
    const StageSeconds& of = seconds_[stage];
    return kind == PassKind::kForward ? of.forward : kind == PassKind::kBackwardInput ? of.input : of.weight;
  }

  int alive(int rank) const {
    int alive = 0;
    for (int chunk = 0; chunk < 2; ++chunk) {
      const int stage = placement_.stage_of(rank, chunk);
      alive += forwards_[stage] - weights_[stage];
    }
    return alive;
  }

  // Before a forward pass. The way there leaves room for one on the way back, where none is alive that would
  // make room by its end.
  int most_alive(int stage) const {
    const int back = 2 * ranks_ - 1 - stage;
    return 2 * ranks_ - (stage < ranks_ && forwards_[back] == weights_[back] ? 1 : 0);
  }

  // The stage whose pass of the same microbatch comes before; -1: none.
  int before(PassKind kind, int stage) const {
    if (kind == PassKind::kForward) return stage - 1;
    return kind == PassKind::kBackwardInput && stage + 1 < 2 * ranks_ ? stage + 1 : -1;
  }

  // But for what other ranks have to do before.
  bool is_due(int rank, PassKind kind, int stage) {
    const int next = done(kind, stage);
    if (next == microbatches_) return false;
    if (kind == PassKind::kForward) return alive(rank) < most_alive(stage);
    return (kind == PassKind::kBackwardWeight ? backwards_ : forwards_)[stage] > next;
  }

  bool can_run(int rank, PassKind kind, int stage) {
    const int other = before(kind, stage);
    return is_due(rank, kind, stage) && (other < 0 || done(kind, other) > done(kind, stage));
  }

  // Something better than weights begins within the rank's patience.
  bool awaits(int rank, double longest) {
    for (const Pass& wanted : rules_.preference) {
      const int stage = stage_of(rank, wanted), other = before(wanted.kind, stage);
      if (other < 0 || !is_due(rank, wanted.kind, stage)) continue;
      const int there = rank_of(other);
      const std::optional<Pass>& runs = running_[there];
      if (runs && runs->kind == wanted.kind && stage_of(there, *runs) == other &&
          done(wanted.kind, other) == done(wanted.kind, stage) && ends_[there] - now_ < longest)
        return true;
    }
    return false;
  }

  void start(int rank) {
    for (const Pass& wanted : rules_.preference) {
      const int stage = stage_of(rank, wanted);
      if (!can_run(rank, wanted.kind, stage)) continue;
      const double takes = duration(wanted.kind, stage);
      if (wanted.kind == PassKind::kBackwardWeight && awaits(rank, rules_.patience * takes)) return;
      running_[rank] = Pass{wanted.kind, {wanted.part.chunk, done(wanted.kind, stage)}};
      ends_[rank] = now_ + takes;
      passes_[rank].push_back(*running_[rank]);
      due_.push({ends_[rank], rank});
      ++started_;
      return;
    }
  }

  // All that end at the next time at which something does. Whoever ran it may start another pass, and so may
  // who has the same microbatch next.
  void end_next() {
    CHECK(!due_.empty(), fmt::format("nothing can run at {}", now_));
    now_ = due_.top().first;
    while (!due_.empty() && due_.top().first <= now_) {
      const int rank = due_.top().second;
      due_.pop();
      const PassKind kind = running_[rank]->kind;
      const int stage = stage_of(rank, *running_[rank]);
      ++done(kind, stage);
      running_[rank].reset();
      may_start_.insert(rank);
      if (kind == PassKind::kForward && stage + 1 < 2 * ranks_) may_start_.insert(rank_of(stage + 1));
      if (kind == PassKind::kBackwardInput && stage > 0) may_start_.insert(rank_of(stage - 1));
    }
  }

  int ranks_, microbatches_;
  StagePlacement placement_;
  std::vector<StageSeconds> seconds_;  // by stage
  VRules rules_;
  std::vector<int> forwards_, backwards_, weights_;  // so many have ended, by stage
  std::vector<std::optional<Pass>> running_;         // by rank
  std::vector<double> ends_;
  using End = std::pair<double, int>;                               // when, rank
  std::priority_queue<End, std::vector<End>, std::greater<>> due_;  // of what runs
  std::set<int> may_start_;                                         // ranks
  std::size_t started_ = 0;                                         // passes
  std::vector<std::vector<Pass>> passes_;
  double now_ = 0;
};

constexpr Pass wanted(PassKind kind, int chunk) {
  return {kind, {chunk, 0}};
}

}  // namespace

// Which rules waste least depends on ranks, microbatches and what passes take: the best of all is taken.
std::vector<std::vector<Pass>> zero_bubble_v(const PipelineSpec& spec) {
  constexpr Pass f0 = wanted(PassKind::kForward, 0), f1 = wanted(PassKind::kForward, 1);
  constexpr Pass b0 = wanted(PassKind::kBackwardInput, 0), b1 = wanted(PassKind::kBackwardInput, 1);
  constexpr Pass w0 = wanted(PassKind::kBackwardWeight, 0), w1 = wanted(PassKind::kBackwardWeight, 1);
  constexpr std::array kPreferences{
      std::array{b0, b1, f1, f0, w0, w1}, std::array{b1, b0, f1, f0, w1, w0},
      std::array{f1, b0, b1, f0, w0, w1}, std::array{f1, f0, b0, b1, w0, w1},
      std::array{b0, b1, w0, w1, f1, f0}, std::array{w0, w1, b0, b1, f1, f0},
      // Where backward passes take several times what forward passes do, chains of them are begun last.
      std::array{f1, f0, b0, w0, w1, b1}};
  std::optional<VClock> best;
  for (const double patience : {0.0, 0.5, 1.0}) {
    for (const auto& preference : kPreferences) {
      VClock clock(spec, {preference, patience});
      clock.run();
      if (!best || clock.seconds() < best->seconds()) best.emplace(std::move(clock));
    }
  }
  return best->take();
}

}  // namespace moebius
