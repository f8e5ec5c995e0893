#include "workloads/study/search/step_bound.h"

#include <algorithm>
#include <set>
#include <utility>

namespace moebius {
namespace {

class Walk {
 public:
  Walk(const PlanFacts& facts, const StagePlacement& placement, int microbatches)
      : facts_(facts),
        placement_(placement),
        microbatches_(microbatches),
        forward_(placement.stages() * std::size_t(microbatches), PassMap::kNever),
        backward_(forward_),
        free_(facts.ranks.size(), 0),
        ended_(free_),
        busy_(free_),
        update_(free_),
        travel_(free_),
        held_(free_),
        peak_(free_) {}

  void take(int rank, const Pass& pass) {
    if (pass.kind == PassKind::kLoad) return;
    if (pass.kind == PassKind::kOptimizer) return update(rank);
    const PassMap& map = facts_.ranks[rank].of(pass);
    const int stage = stage_of(rank, pass.part), behind = stage_of(rank, pass.backward_part());
    const std::array<double, PassMap::kIns> ins{free_[rank], before(stage, pass.part.microbatch),
                                                after(behind, pass.backward_part().microbatch)};
    free_[rank] = map.end(PassMap::kLaneEnd, ins);
    ended_[rank] = std::max({ended_[rank], free_[rank], map.end(PassMap::kAll, ins)});
    busy_[rank] += map.busy();
    at(forward_, stage, pass.part.microbatch) =
        std::max(at(forward_, stage, pass.part.microbatch), map.end(PassMap::kToAfter, ins));
    double& back = at(backward_, behind, pass.backward_part().microbatch);
    back = std::max(back, map.end(PassMap::kToBefore, ins));
    hold(rank, pass);
  }

  // Of all passes of a rank, in whatever order: the first is a forward pass of its first chunk, as of all
  // ranks before it, and every microbatch is at some time kept by all chunks.
  void take_all(int rank, const PassOrder::Counts& counts) {
    const Pass first{PassKind::kForward, {0, 0}};
    const PassMap& map = facts_.ranks[rank].of(first);
    const int stage = stage_of(rank, first.part);
    const std::array<double, PassMap::kIns> ins{stage == 0 ? 0 : PassMap::kNever, before(stage, 0),
                                                PassMap::kNever};
    at(forward_, stage, 0) = map.end(PassMap::kToAfter, ins);
    free_[rank] = std::max(map.end(PassMap::kLaneEnd, ins), map.span()) - map.span() +
                  rank_bound(facts_.ranks[rank], counts);
    ended_[rank] = free_[rank];
    for (const auto& [pass, count] : counts) busy_[rank] += count * facts_.ranks[rank].of(pass).busy();
    for (const auto& of : facts_.ranks[rank].chunks) peak_[rank] += of->kept;
    update(rank);
  }

  StepBound bound() const {
    StepBound bound;
    bound.activations = peak_;
    for (std::size_t rank = 0; rank < free_.size(); ++rank) {
      bound.seconds = std::max(bound.seconds, ended_[rank] + std::max(update_[rank], travel_[rank]));
      bound.passes_s = std::max(bound.passes_s, ended_[rank]);
      bound.passes_busy += busy_[rank] / static_cast<double>(free_.size());
      bound.busy += (busy_[rank] + update_[rank]) / static_cast<double>(free_.size());
    }
    return bound;
  }

 private:
  const ChunkFacts& chunk(int rank, int chunk) const { return *facts_.ranks[rank].chunks[chunk]; }
  int stage_of(int rank, const PassPart& part) const { return placement_.stage_of(rank, part.chunk); }
  double& at(std::vector<double>& of, int stage, int microbatch) {
    return of[std::size_t(stage) * microbatches_ + microbatch];
  }
  double before(int stage, int microbatch) {
    return stage > 0 ? at(forward_, stage - 1, microbatch) : PassMap::kNever;
  }
  double after(int stage, int microbatch) {
    return stage + 1 < placement_.stages() ? at(backward_, stage + 1, microbatch) : PassMap::kNever;
  }

  // What the stages of a rank share is updated once: then the one that has more stands for both.
  void update(int rank) {
    const bool once = facts_.shares_ends && holds(rank, 0) && holds(rank, placement_.stages() - 1);
    for (const auto& chunk : facts_.ranks[rank].chunks) {
      const double travels = chunk->gathers_s + (facts_.sums_last ? chunk->sums_s : 0);
      update_[rank] = once ? std::max(update_[rank], chunk->update_s) : update_[rank] + chunk->update_s;
      travel_[rank] = once ? std::max(travel_[rank], travels) : travel_[rank] + travels;
    }
  }

  bool holds(int rank, int stage) const {
    for (int chunk = 0; chunk < placement_.chunks(); ++chunk)
      if (placement_.stage_of(rank, chunk) == stage) return true;
    return false;
  }

  void hold(int rank, const Pass& pass) {
    if (pass.runs_forward()) held_[rank] += chunk(rank, pass.part.chunk).kept;
    const ChunkFacts& behind = chunk(rank, pass.backward_part().chunk);
    if (pass.kind == PassKind::kBackwardInput) held_[rank] -= behind.kept - behind.left;
    if (pass.kind == PassKind::kBackwardWeight) held_[rank] -= behind.left;
    if (pass.kind == PassKind::kBackward || pass.kind == PassKind::kPair) held_[rank] -= behind.kept;
    peak_[rank] = std::max(peak_[rank], held_[rank]);
  }

  const PlanFacts& facts_;
  const StagePlacement& placement_;
  int microbatches_;
  std::vector<double> forward_, backward_;  // when a stage's message of a microbatch has been sent
  std::vector<double> free_, ended_, busy_, update_, travel_, held_, peak_;  // by rank
};

PassOrder::Counts counted(const std::vector<Pass>& passes) {
  PassOrder::Counts counts;
  for (const Pass& pass : passes) {
    if (pass.kind == PassKind::kOptimizer || pass.kind == PassKind::kLoad) continue;
    const auto alike = std::find_if(counts.begin(), counts.end(), [&](const auto& known) {
      return known.first.kind == pass.kind && known.first.part.chunk == pass.part.chunk &&
             known.first.backward.chunk == pass.backward.chunk;
    });
    if (alike == counts.end())
      counts.push_back({pass, 1});
    else
      ++alike->second;
  }
  return counts;
}

PassOrder ordered(const PipelineSpec& spec, const StagePlacement& placement) {
  const std::vector<std::vector<Pass>> passes = pipeline_passes(spec);
  PassOrder order{run_order(passes, placement), depends_on_times(spec.kind), {}};
  for (const std::vector<Pass>& of_rank : passes) order.counts.push_back(counted(of_rank));
  return order;
}

}  // namespace

std::shared_ptr<const PassOrder> PassOrders::of(const TrainingPlan& plan, int microbatches) {
  const PipelineSpec spec = pipeline_spec(plan, microbatches);
  if (std::int64_t{3} * spec.ranks * spec.chunks * microbatches > kMostPasses) return nullptr;
  const Key key{static_cast<int>(spec.kind), spec.ranks, spec.chunks, microbatches, spec.pairs};
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const PassOrder>& known = known_[key];
  if (!known) known = std::make_shared<const PassOrder>(ordered(spec, StagePlacement(plan)));
  return known;
}

StepBound step_bound(const PlanFacts& facts, const PassOrder& order, const StagePlacement& placement,
                     int microbatches) {
  Walk walk(facts, placement, microbatches);
  if (order.depends_on_times) {
    for (int rank = 0; rank < placement.ranks(); ++rank) walk.take_all(rank, order.counts[rank]);
    return walk.bound();
  }
  for (const RankPass& turn : order.turns) walk.take(turn.rank, turn.pass);
  return walk.bound();
}

std::set<std::pair<int, int>> pairs_of(const PassOrder::Counts& counts) {
  std::set<std::pair<int, int>> pairs;
  for (const auto& [pass, count] : counts) {
    if (pass.kind == PassKind::kPair) pairs.insert({pass.part.chunk, pass.backward.chunk});
  }
  return pairs;
}

double rank_bound(const PlanFacts::Rank& facts, const PassOrder::Counts& counts) {
  double seconds = 0;
  for (const auto& [pass, count] : counts) seconds += count * facts.of(pass).span();
  return seconds;
}

}  // namespace moebius
