#include "workloads/training/pipeline/slice_clock.h"

#include <algorithm>
#include <numeric>

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
      : placement_(placement),
        microbatches_(spec.microbatches),
        order_(run_order(pipeline_passes(spec), placement)) {}

  double run(const std::vector<std::vector<double>>& seconds) {
    const std::size_t places = std::size_t(placement_.stages()) * microbatches_;
    forward_.assign(places, 0), backward_.assign(places, 0);
    std::vector<double> free(placement_.ranks(), 0);
    for (const auto& [rank, pass] : order_) {
      const double begin = std::max({free[rank], before_forward(rank, pass), before_backward(rank, pass)});
      free[rank] = begin + duration(seconds[rank], pass);
      if (pass.runs_forward()) at(forward_, rank, pass.part) = free[rank];
      if (pass.runs_backward()) at(backward_, rank, pass.backward_part()) = free[rank];
    }
    return *std::max_element(free.begin(), free.end());
  }

 private:
  double& at(std::vector<double>& ends, int rank, const PassPart& part, int further = 0) {
    const int stage = placement_.stage_of(rank, part.chunk) + further;
    return ends[std::size_t(stage) * microbatches_ + part.microbatch];
  }

  // When what the pass waits for in that direction has ended.
  double before_forward(int rank, const Pass& pass) {
    const bool waits = pass.runs_forward() && placement_.stage_of(rank, pass.part.chunk) > 0;
    return waits ? at(forward_, rank, pass.part, -1) : 0;
  }
  double before_backward(int rank, const Pass& pass) {
    if (!pass.runs_backward()) return 0;
    const PassPart& part = pass.backward_part();
    const bool last = placement_.stage_of(rank, part.chunk) + 1 == placement_.stages();
    return last ? at(forward_, rank, part) : at(backward_, rank, part, +1);
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

  const StagePlacement& placement_;
  int microbatches_;
  std::vector<RankPass> order_;
  std::vector<double> forward_, backward_;  // ends by stage and microbatch
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
