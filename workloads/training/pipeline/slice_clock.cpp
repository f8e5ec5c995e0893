#include "workloads/training/pipeline/slice_clock.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr int kRounds = 4;              // of microbatches for each rank: then the schedule repeats itself
constexpr int kMostEvaluations = 2000;  // of moved layers

// By rank and chunk.
std::vector<std::vector<double>> seconds_of(const SliceLoads& loads, const StagePlacement& placement,
                                            const std::vector<int>& layers) {
  std::vector<int> first(layers.size() + 1, 0);
  std::partial_sum(layers.begin(), layers.end(), first.begin() + 1);
  std::vector<std::vector<double>> seconds(placement.ranks());
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const int stage = placement.stage_of(rank, chunk);
      const auto of_layer = loads.seconds[rank].begin();
      double sum = std::accumulate(of_layer + first[stage], of_layer + first[stage + 1], 0.0);
      if (stage == 0) sum += loads.embedding_seconds[rank];
      if (stage + 1 == placement.stages()) sum += loads.head_seconds[rank];
      seconds[rank].push_back(sum);
    }
  }
  return seconds;
}

class SliceClock {
 public:
  SliceClock(const PipelineSpec& spec, const StagePlacement& placement)
      : placement_(placement), microbatches_(spec.microbatches), passes_(pipeline_passes(spec)) {}

  // Each rank goes as far as it can, again and again.
  double run(const std::vector<std::vector<double>>& seconds) {
    const std::size_t places = std::size_t(placement_.stages()) * microbatches_;
    forward_.assign(places, -1), backward_.assign(places, -1);
    std::vector<std::size_t> next(passes_.size(), 0);
    std::vector<double> free(passes_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < passes_.size(); ++rank) {
        for (; next[rank] < passes_[rank].size(); ++next[rank], moved = true) {
          const Pass& pass = passes_[rank][next[rank]];
          const std::optional<double> begin = begin_of(static_cast<int>(rank), pass);
          if (!begin) break;
          free[rank] = std::max(free[rank], *begin) + duration(seconds[rank], pass);
          end(static_cast<int>(rank), pass, free[rank]);
        }
      }
    }
    for (std::size_t rank = 0; rank < passes_.size(); ++rank)
      CHECK(next[rank] == passes_[rank].size(), "a pass waits for ever");
    return *std::max_element(free.begin(), free.end());
  }

 private:
  double& at(std::vector<double>& ends, int stage, int microbatch) {
    return ends[std::size_t(stage) * microbatches_ + microbatch];
  }

  // When what it waits for has ended; nothing as long as that is not known.
  std::optional<double> begin_of(int rank, const Pass& pass) {
    double begin = 0;
    const auto wait = [&](double end) {
      if (end < 0) return false;
      begin = std::max(begin, end);
      return true;
    };
    if (pass.runs_forward()) {
      const int stage = placement_.stage_of(rank, pass.part.chunk);
      if (stage > 0 && !wait(at(forward_, stage - 1, pass.part.microbatch))) return {};
    }
    if (pass.runs_backward()) {
      const PassPart& part = pass.backward_part();
      const int stage = placement_.stage_of(rank, part.chunk);
      const bool last = stage + 1 == placement_.stages();
      if (!wait(last ? at(forward_, stage, part.microbatch) : at(backward_, stage + 1, part.microbatch)))
        return {};
    }
    return begin;
  }

  static double duration(const std::vector<double>& seconds, const Pass& pass) {
    switch (pass.kind) {
      case PassKind::kForward:
      case PassKind::kBackwardInput:
      case PassKind::kBackwardWeight:
        return seconds[pass.part.chunk] / 3;
      case PassKind::kBackward:
        return seconds[pass.part.chunk] * 2 / 3;
      case PassKind::kPair:
        return seconds[pass.part.chunk] / 3 + seconds[pass.backward.chunk] * 2 / 3;
      case PassKind::kLoad:
      case PassKind::kOptimizer:
        break;
    }
    return 0;
  }

  void end(int rank, const Pass& pass, double when) {
    if (pass.runs_forward())
      at(forward_, placement_.stage_of(rank, pass.part.chunk), pass.part.microbatch) = when;
    const PassPart& part = pass.backward_part();
    if (pass.runs_backward()) at(backward_, placement_.stage_of(rank, part.chunk), part.microbatch) = when;
  }

  const StagePlacement& placement_;
  int microbatches_;
  std::vector<std::vector<Pass>> passes_;   // by rank
  std::vector<double> forward_, backward_;  // ends by stage and microbatch; -1: not yet
};

// The schedule of a few microbatches and of twice as many, from which those of many follow.
class StepClock {
 public:
  StepClock(const PipelineSpec& spec, const StagePlacement& placement)
      : all_(spec.microbatches),
        few_(std::min(all_, kRounds / 2 * spec.ranks)),
        more_(std::min(all_, kRounds * spec.ranks)),
        clock_of_few_(with(spec, few_), placement),
        clock_of_more_(with(spec, more_), placement) {}

  double run(const std::vector<std::vector<double>>& seconds) {
    const double more = clock_of_more_.run(seconds);
    if (all_ == more_) return more;
    return more + (more - clock_of_few_.run(seconds)) * (all_ - more_) / (more_ - few_);
  }

 private:
  static PipelineSpec with(PipelineSpec spec, int microbatches) {
    spec.microbatches = microbatches;
    return spec;
  }
  int all_, few_, more_;
  SliceClock clock_of_few_, clock_of_more_;
};

int busiest(const std::vector<std::vector<double>>& seconds) {
  const auto sum = [](const std::vector<double>& of) { return std::accumulate(of.begin(), of.end(), 0.0); };
  const auto most = std::max_element(seconds.begin(), seconds.end(),
                                     [&](const auto& a, const auto& b) { return sum(a) < sum(b); });
  return static_cast<int>(most - seconds.begin());
}

}  // namespace

double step_seconds(const SliceLoads& loads, const PipelineSpec& spec, const StagePlacement& placement,
                    const std::vector<int>& layers) {
  return StepClock(spec, placement).run(seconds_of(loads, placement, layers));
}

std::vector<int> with_layers_moved(const SliceLoads& loads, const PipelineSpec& spec,
                                   const StagePlacement& placement, std::vector<int> layers) {
  constexpr double kGain = 1e-6;
  StepClock clock(spec, placement);
  double best = clock.run(seconds_of(loads, placement, layers));
  int evaluations = 0;
  for (bool better = true; better;) {
    better = false;
    const int rank = busiest(seconds_of(loads, placement, layers));
    for (int chunk = 0; chunk < placement.chunks() && !better; ++chunk) {
      const int from = placement.stage_of(rank, chunk);
      for (int to = 0; to < placement.stages() && layers[from] > 1 && !better; ++to) {
        if (to == from || ++evaluations > kMostEvaluations) continue;
        std::vector<int> moved = layers;
        --moved[from], ++moved[to];
        const double seconds = clock.run(seconds_of(loads, placement, moved));
        if (seconds >= best * (1 - kGain)) continue;
        best = seconds, layers = std::move(moved), better = true;
      }
    }
  }
  return layers;
}

}  // namespace moebius
