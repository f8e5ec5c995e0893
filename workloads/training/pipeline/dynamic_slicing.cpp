#include "workloads/training/pipeline/dynamic_slicing.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/training/layers/stage_fragments.h"
#include "workloads/training/pipeline/fragment_clock.h"
#include "workloads/training/pipeline/slice_clock.h"
#include "workloads/training/pipeline/slicing.h"
#include "workloads/training/pipeline/two_batch.h"
#include "workloads/training/state/away_state.h"
#include "workloads/training/state/memory.h"
#include "workloads/training/state/optimizer.h"
#include "workloads/training/training.h"

namespace moebius {
namespace {

using Counts = std::vector<int>;

// The fragments of a slice, what a rank keeps of it.
struct Probe {
  StageFragments fragments;
  FragmentPtr pair;
  double stays = 0, kept = 0, passing = 0;  // bytes
};

double bytes_of(const Fragment& fragment, Scope scope, std::set<std::uint32_t>& seen) {
  double bytes = 0;
  for (const Tensor& tensor : fragment.tensors) {
    if (tensor.scope == scope && !tensor.on_host && seen.insert(tensor.key).second)
      bytes += tensor.bytes().value;
  }
  return bytes;
}

// The fullest moment of one fragment, beyond what it keeps.
double passing_bytes(const Fragment& fragment) {
  const MemoryPass pass{&fragment, 1, 1};
  const ClassMemory memory = memory_of_passes(std::span(&pass, 1));
  return memory.at_peak[static_cast<int>(MemoryKind::kTransient)].value;
}

class Probes {
 public:
  explicit Probes(const SlicingInput& input)
      : input_(input),
        plan_(input.plan),
        workload_(input.workload),
        placement_(plan_),
        lowering_{&input.model, &plan_, &workload_, input.cluster.pools.front().node.accelerators},
        store_(lowering_, std::vector<StageSlice>(placement_.stages())),
        layout_(layout_of(plan_)),
        clock_(input.cluster) {
    workload_.popularity = {};
    workload_.lengths.reset();
  }

  Probe of(StageSlice slice, int stage) {
    StageSpec spec = store_.spec_of(rank_of(stage), {}, chunk_of(stage));
    spec.slice = slice;
    Probe probe;
    probe.fragments = store_.lower(spec);
    measure(spec, probe);
    return probe;
  }

  double seconds(const Probe& probe, int rank) {
    double slowest = 0;
    for (const Pool* pool : pools_of(rank)) {
      double sum = 0;
      for (const Fragment* fragment : passes(probe)) {
        if (fragment != nullptr) sum += clock_.seconds(*fragment, layout_.classes[rank], *pool);
      }
      slowest = std::max(slowest, sum);
    }
    return slowest;
  }

  StageSeconds split_seconds(const Probe& probe, int stage) {
    StageSeconds slowest{0, 0, 0};
    const int rank = rank_of(stage);
    const StageFragments& all = probe.fragments;
    for (const Pool* pool : pools_of(rank)) {
      const auto of = [&](const FragmentPtr& part) {
        return clock_.seconds(*part, layout_.classes[rank], *pool);
      };
      const StageSeconds here{of(all.forward), of(all.inputs), of(all.weights)};
      const auto sum = [](const StageSeconds& s) { return s.forward + s.input + s.weight; };
      if (sum(here) > sum(slowest)) slowest = here;
    }
    return slowest;
  }

  // With what hybrid recomputation chooses for each stage where passes come in the order for seconds `kept`.
  std::vector<StageSeconds> chosen_seconds(const std::vector<StageSlice>& slices,
                                           const std::vector<StageSeconds>& kept) {
    plan_.stage_seconds = kept;
    plan_.keeps_to_budget = false;
    FragmentStore store(lowering_, slices);
    std::vector<StageSeconds> seconds;
    for (int stage = 0; stage < placement_.stages(); ++stage) {
      const auto fragment = [&](PassKind kind) {
        return store.get(rank_of(stage), {}, 0, {.kind = kind, .part = {chunk_of(stage), 1}});
      };
      Probe probe;
      probe.fragments.forward = fragment(PassKind::kForward);
      probe.fragments.inputs = fragment(PassKind::kBackwardInput);
      probe.fragments.weights = fragment(PassKind::kBackwardWeight);
      seconds.push_back(split_seconds(probe, stage));
    }
    return seconds;
  }

  double room(int rank) const {
    double least = 0;
    for (const Pool* pool : pools_of(rank)) {
      const double room = (pool->accelerator.memory - plan_.memory_reserve).value;
      least = least == 0 ? room : std::min(least, room);
    }
    return least;
  }

 private:
  static Layout layout_of(TrainingPlan plan) {
    plan.fold = true;
    return make_layout(plan);
  }

  int rank_of(int stage) const { return place_of(stage).first; }
  int chunk_of(int stage) const { return place_of(stage).second; }
  std::pair<int, int> place_of(int stage) const {
    for (int rank = 0; rank < placement_.ranks(); ++rank)
      for (int chunk = 0; chunk < placement_.chunks(); ++chunk)
        if (placement_.stage_of(rank, chunk) == stage) return {rank, chunk};
    return {0, 0};
  }

  std::vector<const Pool*> pools_of(int rank) const {
    if (input_.only != nullptr) return {input_.only};
    std::vector<const Pool*> pools;
    const int size = plan_.ranks() / plan_.pp;
    int first = 0;
    for (const Pool& pool : input_.cluster.pools) {
      if (first < (rank + 1) * size && rank * size < first + pool.devices()) pools.push_back(&pool);
      first += pool.devices();
    }
    return pools;
  }

  bool pairs() const {
    return plan_.overlap_two_batch || plan_.schedule == PipelineKind::kDualPipe ||
           plan_.schedule == PipelineKind::kDualPipeV;
  }

  void measure(const StageSpec& spec, Probe& probe) {
    const StageFragments& all = probe.fragments;
    std::set<std::uint32_t> stay, kept, step;
    for (const FragmentPtr& each : {all.forward, all.backward, all.inputs, all.weights}) {
      if (!each) continue;
      probe.stays += bytes_of(*each, Scope::kRank, stay) + bytes_of(*each, Scope::kStep, step);
      probe.kept += bytes_of(*each, Scope::kMicrobatch, kept);
      probe.passing = std::max(probe.passing, passing_bytes(*each));
    }
    if (workload_.forward_only) return;
    FragmentBuilder builder = lower_optimizer(lowering_, spec, all.parameters);
    probe.stays += bytes_of(*freeze_with_away_state(plan_, {}, builder), Scope::kRank, stay);
    if (pairs() && all.backward) probe.pair = overlap(*all.backward, *all.forward);
  }

  static std::vector<const Fragment*> passes(const Probe& probe) {
    const StageFragments& all = probe.fragments;
    if (probe.pair) return {probe.pair.get()};
    if (all.backward) return {all.forward.get(), all.backward.get()};
    return {all.forward.get(), all.inputs.get(), all.weights.get()};
  }

  const SlicingInput& input_;
  TrainingPlan plan_;
  TrainingWorkload workload_;
  StagePlacement placement_;
  LoweringInput lowering_;
  FragmentStore store_;
  Layout layout_;
  FragmentClock clock_;
};

void count(const Pass& pass, int by, std::vector<int>& alive) {
  if (by > 0 && pass.runs_forward()) ++alive[pass.part.chunk];
  if (by < 0 && pass.writes_weights()) --alive[pass.backward_part().chunk];
}

bool covers(const Counts& a, const Counts& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] < b[i]) return false;
  }
  return true;
}

void add_moment(const Counts& counts, std::vector<Counts>& moments) {
  if (std::any_of(moments.begin(), moments.end(), [&](const Counts& known) { return covers(known, counts); }))
    return;
  std::erase_if(moments, [&](const Counts& known) { return covers(counts, known); });
  moments.push_back(counts);
}

// The first layer of each kind: dense, experts.
std::map<bool, int> kinds_of(const Model& model) {
  std::map<bool, int> first;
  for (int layer = model.layers; layer-- > 0;) first[model.is_moe_layer(layer)] = layer;
  return first;
}

}  // namespace

std::vector<std::vector<std::vector<int>>> alive_microbatches(const PipelineSpec& spec) {
  std::vector<std::vector<Counts>> all;
  for (const std::vector<Pass>& passes : pipeline_passes(spec)) {
    std::vector<Counts> moments;
    Counts alive(spec.chunks, 0);
    for (const Pass& pass : passes) {
      count(pass, +1, alive);
      add_moment(alive, moments);
      count(pass, -1, alive);
    }
    all.push_back(std::move(moments));
  }
  return all;
}

SliceLoads slice_loads(const SlicingInput& input) {
  const Model& model = input.model;
  const StagePlacement placement(input.plan);
  const int ranks = placement.ranks(), last = placement.stages() - 1;
  const int between = placement.stages() > 2 ? 1 : 0;  // a stage without head
  Probes probes(input);
  SliceLoads loads;
  std::map<bool, Probe> kinds;
  for (const auto& [moe, layer] : kinds_of(model)) {
    kinds[moe] = probes.of({layer, 1, false, false}, between);
    loads.passing = std::max(loads.passing, kinds[moe].passing);
  }
  const auto kind_of = [&](int layer) -> const Probe& { return kinds[model.is_moe_layer(layer)]; };
  const Probe first = probes.of({0, 1, true, false}, 0);
  const Probe head = probes.of({model.layers - 1, 1, false, true}, last);
  const Probe &plain_first = kind_of(0), &plain_last = kind_of(model.layers - 1);
  for (int layer = 0; layer < model.layers; ++layer) {
    loads.stays.push_back(kind_of(layer).stays);
    loads.kept.push_back(kind_of(layer).kept);
  }
  loads.embedding_stays = std::max(0.0, first.stays - plain_first.stays);
  loads.embedding_kept = std::max(0.0, first.kept - plain_first.kept);
  loads.head_stays = std::max(0.0, head.stays - plain_last.stays);
  loads.head_kept = std::max(0.0, head.kept - plain_last.kept);
  loads.head_passing = head.passing;
  for (int rank = 0; rank < ranks; ++rank) {
    std::map<bool, double> seconds;
    for (const auto& [moe, probe] : kinds) seconds[moe] = probes.seconds(probe, rank);
    loads.seconds.emplace_back();
    for (int layer = 0; layer < model.layers; ++layer)
      loads.seconds.back().push_back(seconds[model.is_moe_layer(layer)]);
    loads.embedding_seconds.push_back(
        std::max(0.0, probes.seconds(first, rank) - loads.seconds.back().front()));
    loads.head_seconds.push_back(std::max(0.0, probes.seconds(head, rank) - loads.seconds.back().back()));
    loads.room.push_back(probes.room(rank));
  }
  loads.alive = alive_microbatches(pipeline_spec(input.plan, input.workload.num_microbatches(input.plan)));
  if (input.workload.forward_only) loads.alive.assign(ranks, {Counts(placement.chunks(), 1)});
  return loads;
}

std::vector<StageSeconds> stage_seconds(const SlicingInput& input, const std::vector<StageSlice>& slices) {
  Probes probes(input);
  std::vector<StageSeconds> seconds;
  for (int stage = 0; stage < static_cast<int>(slices.size()); ++stage)
    seconds.push_back(probes.split_seconds(probes.of(slices[stage], stage), stage));
  const bool hybrid = input.plan.recompute == RecomputePolicy::kHybrid;
  return hybrid ? probes.chosen_seconds(slices, seconds) : seconds;
}

namespace {

// What the fullest rank holds of its room when slices are lowered whole: single layers, counted for as long
// as their microbatches are alive, are too much where reverse passes are in two parts, of which each lets go.
double share_filled(const SlicingInput& input, const std::vector<double>& room,
                    const std::vector<int>& layers) {
  TrainingPlan plan = input.plan;
  plan.layers = layers;
  plan.fold = true;
  Training training({.model = input.model,
                     .plan = plan,
                     .workload = input.workload,
                     .ranks_per_node = input.cluster.pools.front().node.accelerators});
  const MemoryReport memory = training.memory(input.cluster.pools.front().accelerator.memory);
  double fullest = 0;
  for (std::size_t i = 0; i < memory.classes.size(); ++i) {
    const int rank = training.layout().classes[i].representative() / (plan.ranks() / plan.pp);
    fullest = std::max(fullest, memory.classes[i].peak.value / room[rank]);
  }
  return fullest;
}

SliceChoice balanced_choice(const SlicingInput& input, const SliceLoads& loads,
                            const StagePlacement& placement) {
  SliceChoice choice;
  const std::vector<double> speeds = speeds_of_stages(placement, input.plan.stage_speeds);
  for (const StageSlice& slice :
       slice_balanced(input.model, input.workload.sequence_length, placement.stages(), speeds))
    choice.layers.push_back(slice.num_layers);
  choice.cost = cost_of_slices(loads, placement, choice.layers);
  choice.exact = false;
  return choice;
}

}  // namespace

// The fastest slices are tried first; where they do not fit, the room is counted anew by how much they were
// taken for more than they fill, until some fit. Of those and of slices by FLOPs the one is chosen with which
// the schedule takes least.
DynamicSlices slice_dynamically(const SlicingInput& input) {
  constexpr int kRounds = 6;
  constexpr const char* kByMoving = "by moving single layers";
  const StagePlacement placement(input.plan);
  const PipelineSpec spec = pipeline_spec(input.plan, input.workload.num_microbatches(input.plan));
  const SliceLoads loads = slice_loads(input);
  const SliceChoice balanced = balanced_choice(input, loads, placement);
  DynamicSlices slices{balanced, balanced.cost, "as by FLOPs"};
  slices.choice.cost.fullest = slices.balanced.fullest = share_filled(input, loads.room, balanced.layers);
  double seconds = step_seconds(loads, spec, placement, balanced.layers);
  const auto consider = [&](SliceChoice choice, const char* how) {
    choice.cost.fullest = share_filled(input, loads.room, choice.layers);
    const double takes = step_seconds(loads, spec, placement, choice.layers);
    const double filled = choice.cost.fullest, known = slices.choice.cost.fullest;
    const bool is_better = known <= 1 ? filled <= 1 && takes < seconds : filled < known;
    if (is_better) slices.choice = std::move(choice), slices.how = how, seconds = takes;
    return filled;
  };
  SliceLoads roomy = loads;
  roomy.room.assign(loads.room.size(), std::numeric_limits<double>::infinity());
  double counted = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    SliceChoice choice = search_slices(roomy, placement);
    choice.cost = cost_of_slices(loads, placement, choice.layers);
    const double filled = consider(choice, choice.exact ? "" : kByMoving);
    if (filled <= 1) break;
    counted = std::min(0.97 * counted, choice.cost.fullest / filled);
    for (std::size_t rank = 0; rank < loads.room.size(); ++rank)
      roomy.room[rank] = counted * loads.room[rank];
  }
  if (placement.chunks() > 1) {  // where how a rank's layers lie over its chunks counts too
    SliceChoice moved{with_layers_moved(loads, spec, placement, slices.choice.layers), {}, false};
    moved.cost = cost_of_slices(loads, placement, moved.layers);
    consider(std::move(moved), kByMoving);
  }
  return slices;
}

std::string describe(const DynamicSlices& slices) {
  const SliceCost &cost = slices.choice.cost, &balanced = slices.balanced;
  return fmt::format(
      "slicing        dynamic{}: layers {}; slowest rank {:.4g} ms a microbatch (by FLOPs {:.4g} ms), "
      "fullest "
      "{:.1f}% (by FLOPs {:.1f}%)\n",
      slices.how.empty() ? "" : fmt::format(" ({})", slices.how), fmt::join(slices.choice.layers, " "),
      1e3 * cost.slowest_rank, 1e3 * balanced.slowest_rank, 100 * cost.fullest, 100 * balanced.fullest);
}

}  // namespace moebius
