#include <algorithm>
#include <array>
#include <optional>
#include <span>

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

// Runs the V in slots of one pass each, rank by rank what can run now, by a fixed order of preference.
class VSlots {
 public:
  VSlots(const PipelineSpec& spec, std::span<const Pass> preference)
      : ranks_(spec.ranks),
        microbatches_(spec.microbatches),
        placement_(spec.kind, spec.ranks, 2),
        preference_(preference.begin(), preference.end()),
        forwards_(2 * ranks_),
        backwards_(2 * ranks_),
        weights_(2 * ranks_),
        passes_(ranks_) {}

  void run() {
    const std::size_t all = std::size_t{6} * microbatches_;
    while (std::any_of(passes_.begin(), passes_.end(), [&](const auto& done) { return done.size() < all; })) {
      std::vector<std::optional<Pass>> chosen;
      for (int rank = 0; rank < ranks_; ++rank) chosen.push_back(choose(rank));
      for (int rank = 0; rank < ranks_; ++rank) {
        if (chosen[rank]) take(rank, *chosen[rank]);
      }
      ++slots_;
      CHECK(slots_ < static_cast<int>(all) * (ranks_ + 1), fmt::format("{} slots", slots_));
    }
  }

  int slots() const { return slots_; }
  const std::vector<std::vector<Pass>>& passes() const { return passes_; }

 private:
  int& done(PassKind kind, int stage) {
    return kind == PassKind::kForward         ? forwards_[stage]
           : kind == PassKind::kBackwardInput ? backwards_[stage]
                                              : weights_[stage];
  }

  int alive(int rank) const {
    int alive = 0;
    for (int chunk = 0; chunk < 2; ++chunk) {
      const int stage = placement_.stage_of(rank, chunk);
      alive += forwards_[stage] - weights_[stage];
    }
    return alive;
  }

  bool can_run(int rank, PassKind kind, int stage) {
    const int next = done(kind, stage);
    if (next == microbatches_) return false;
    if (kind == PassKind::kForward)
      return alive(rank) < 2 * ranks_ && (stage == 0 || forwards_[stage - 1] > next);
    if (kind == PassKind::kBackwardWeight) return backwards_[stage] > next;
    return forwards_[stage] > next && (stage == 2 * ranks_ - 1 || backwards_[stage + 1] > next);
  }

  std::optional<Pass> choose(int rank) {
    for (const Pass& wanted : preference_) {
      const int stage = placement_.stage_of(rank, wanted.part.chunk);
      if (can_run(rank, wanted.kind, stage))
        return Pass{wanted.kind, {wanted.part.chunk, done(wanted.kind, stage)}};
    }
    return {};
  }

  void take(int rank, const Pass& pass) {
    ++done(pass.kind, placement_.stage_of(rank, pass.part.chunk));
    passes_[rank].push_back(pass);
  }

  int ranks_, microbatches_;
  StagePlacement placement_;
  std::vector<Pass> preference_;
  std::vector<int> forwards_, backwards_, weights_;  // so many have run, by stage
  std::vector<std::vector<Pass>> passes_;            // by rank
  int slots_ = 0;
};

constexpr Pass wanted(PassKind kind, int chunk) {
  return {kind, {chunk, 0}};
}

}  // namespace

// Which preference wastes no slot depends on ranks and microbatches: the best of three is taken.
std::vector<Pass> zero_bubble_v(const PipelineSpec& spec, int rank) {
  constexpr PassKind kF = PassKind::kForward, kB = PassKind::kBackwardInput, kW = PassKind::kBackwardWeight;
  constexpr std::array kPreferences{
      std::array{wanted(kB, 0), wanted(kB, 1), wanted(kF, 1), wanted(kF, 0), wanted(kW, 0), wanted(kW, 1)},
      std::array{wanted(kB, 1), wanted(kB, 0), wanted(kF, 1), wanted(kF, 0), wanted(kW, 1), wanted(kW, 0)},
      std::array{wanted(kF, 1), wanted(kB, 0), wanted(kB, 1), wanted(kF, 0), wanted(kW, 0), wanted(kW, 1)}};
  std::optional<VSlots> best;
  for (const auto& preference : kPreferences) {
    VSlots slots(spec, preference);
    slots.run();
    if (!best || slots.slots() < best->slots()) best.emplace(std::move(slots));
  }
  return best->passes()[rank];
}

}  // namespace moebius
