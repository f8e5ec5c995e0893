#include "workloads/training/layers/stage_fragments.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/training/packing.h"
#include "workloads/training/pipeline/two_batch.h"
#include "workloads/training/state/away_state.h"
#include "workloads/training/state/optimizer.h"
#include "workloads/training/state/sharding.h"
#include "workloads/training/state/shared_scales.h"

namespace moebius {
namespace {

bool has_whole_backward(PipelineKind kind) {
  return kind != PipelineKind::kZbH1 && kind != PipelineKind::kZbV;
}

bool has_split_backward(PipelineKind kind) {
  switch (kind) {
    case PipelineKind::kGpipe:
    case PipelineKind::k1F1B:
    case PipelineKind::kInterleaved:
      return false;
    case PipelineKind::kZbH1:
    case PipelineKind::kZbV:
    case PipelineKind::kDualPipe:
    case PipelineKind::kDualPipeV:
      return true;
  }
  return false;
}

// As the pass finds weights and leaves them.
FragmentPtr as_held(const StageFragments& all, PassKind kind, const HeldWeights& weights, bool last) {
  const auto found = all.held.find({kind, weights, last});
  if (found != all.held.end()) return found->second;
  switch (kind) {
    case PassKind::kForward:
      return all.forward;
    case PassKind::kBackwardInput:
      return all.inputs;
    case PassKind::kBackwardWeight:
      return last ? all.last_weights : all.weights;
    case PassKind::kBackward:
    case PassKind::kPair:
    case PassKind::kOptimizer:
    case PassKind::kLoad:
      break;
  }
  return last ? all.last_backward : all.backward;
}

}  // namespace

FragmentStore::FragmentStore(const LoweringInput& input, std::vector<StageSlice> slices)
    : input_(input), slices_(std::move(slices)), placement_(*input.plan) {}

bool FragmentStore::fixed_routes() const {
  return input_.workload->popularity.kind == PopularityKind::kBalanced || input_.model->experts.routed == 0;
}

bool FragmentStore::scores_differ() const {
  return packs() && input_.plan->attention == AttentionKernels::kUnfused;
}

std::vector<RoutePtr> FragmentStore::routes_of(const Fragment& fragment, int step, int microbatch) {
  std::vector<RoutePtr> routes;
  for (const RoutePtr& route : fragment.routes) {
    RouteSpec spec = route->spec();
    spec.step = step;
    if (input_.workload->popularity.per_microbatch) spec.microbatch = microbatch;
    routes.push_back(routes_.get(spec));
  }
  return routes;
}

FragmentPtr FragmentStore::get(int rank, ShardPosition shard, int step, const Pass& pass) {
  switch (pass.kind) {
    case PassKind::kForward:
      return forward(rank, shard, step, pass);
    case PassKind::kBackwardInput:
      return as_held(fragments(rank, shard, step, pass.part), pass.kind, pass.weights, false);
    case PassKind::kBackward:
      return backward(rank, shard, step, pass);
    case PassKind::kBackwardWeight:
      return as_held(fragments(rank, shard, step, pass.part), pass.kind, pass.weights, pass.last);
    case PassKind::kPair:
      return pair(rank, shard, step, pass);
    case PassKind::kOptimizer:
      return optimizer(rank, shard, step);
    case PassKind::kLoad:
      return load(rank, shard, step, pass.part);
  }
  CHECK(false, std::string("unknown pass"));
  return nullptr;
}

// Of the run: where a rank reads for several chunks, it begins with the first of them.
FragmentPtr FragmentStore::load(int rank, ShardPosition shard, int step, const PassPart& part) {
  const StageFragments& all = fragments(rank, shard, step, part);
  bool first = step == input_.workload->first_step && part.microbatch == 0;
  for (int chunk = 0; chunk < part.chunk; ++chunk) {
    const int stage = placement_.stage_of(rank, chunk);
    first = first && stage > 0 && stage + 1 < placement_.stages();
  }
  return first ? all.first_load : all.load;
}

// The first microbatch that a stage takes is the first one of the step.
FragmentPtr FragmentStore::forward(int rank, ShardPosition shard, int step, const Pass& pass) {
  const StageFragments& all = fragments(rank, shard, step, pass.part);
  // Beside a reverse pass of its own stage it is not, whichever microbatch stands for all.
  const bool later = pass.kind == PassKind::kPair && pass.backward.chunk == pass.part.chunk;
  const bool first = pass.part.microbatch == 0 && !later && all.first_forward;
  return first ? all.first_forward : as_held(all, PassKind::kForward, pass.weights, false);
}

FragmentPtr FragmentStore::backward(int rank, ShardPosition shard, int step, const Pass& pass) {
  const HeldWeights& held = pass.kind == PassKind::kPair ? pass.backward_weights : pass.weights;
  return as_held(fragments(rank, shard, step, pass.backward_part()), PassKind::kBackward, held, pass.last);
}

FragmentPtr FragmentStore::pair(int rank, ShardPosition shard, int step, const Pass& pass) {
  const FragmentPtr ahead = forward(rank, shard, step, pass);
  const FragmentPtr reverse = backward(rank, shard, step, pass);
  constexpr std::size_t kKept = 1024;  // more than are in use where routes are fixed
  if (pairs_.size() >= kKept) pairs_.clear();
  FragmentPtr& both = pairs_[{ahead, reverse}];
  if (!both) both = overlap(*reverse, *ahead);
  return both;
}

const StageFragments& FragmentStore::fragments(int rank, ShardPosition shard, int step,
                                               const PassPart& part) {
  StageSpec stage = spec_of(rank, shard, part.chunk);
  stage.step = fixed_routes() ? 0 : step;
  if (!fixed_routes() && input_.workload->popularity.per_microbatch) stage.microbatch = part.microbatch;
  Key key{stage.step, stage.microbatch,
          Place{rank, part.chunk, shard.tensor, shard.expert, shard.expert_part, shard.dense, 0}};
  if (packs())
    key = {
        step, part.microbatch,
        Place{rank, part.chunk, shard.tensor, shard.expert, shard.expert_part, shard.dense, shard.replica}};
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  if (packs()) {
    const int replica = packed_replica(step, shard.replica);
    stage.packed = pack(*input_.workload, {step, part.microbatch * input_.plan->dp + replica});
    stage.counted_tokens = counted_tokens(step);
  }
  stage.recompute = recompute_of(stage);
  const StageFragments& made = known_[key] = lower(stage);
  for (const RoutePtr& route : made.forward->routes) {
    if (route->spec().gathered == 1) loads_.add(*route);
  }
  return made;
}

double FragmentStore::counted_tokens(int step) {
  const auto [place, added] = counted_.try_emplace(step, 0);
  if (added) place->second = std::max(1.0, packed_tokens(*input_.workload, *input_.plan, step).counted);
  return place->second;
}

int FragmentStore::packed_replica(int step, int replica) {
  if (!input_.plan->fold || replica > 0) return replica;
  const auto [place, added] = heaviest_.try_emplace(step, 0);
  if (added) place->second = heaviest_replica(*input_.workload, *input_.plan, step);
  return place->second;
}

StageSpec FragmentStore::spec_of(int rank, ShardPosition shard, int chunk) const {
  StageSpec stage;
  stage.stage = placement_.stage_of(rank, chunk);
  stage.slice = slices_[stage.stage];
  stage.shard = shard;
  stage.chunk = chunk;
  // Both ways, a stage's replicas hold it in their first or their second chunk.
  stage.meetings = placement_.both_ways() ? (2 * stage.stage < placement_.stages() ? 0 : 1) : chunk;
  stage.previous = placement_.previous(rank, chunk);
  stage.next = placement_.next(rank, chunk);
  return stage;
}

// From here on the forward fragment is frozen: the reverse passes have marked what it must keep.
StageFragments FragmentStore::lower(const StageSpec& stage) {
  ForwardPass forward = lower_forward(input_, stage, routes_);
  StageFragments fragments;
  if (!forward.read.empty()) {
    fragments.load = lower_load(input_, stage, forward, false).freeze_it();
    fragments.first_load = lower_load(input_, stage, forward, true).freeze_it();
  }
  if (input_.workload->forward_only) {
    share_magnitudes(*input_.plan, Phase::kForward, forward.builder);
    fragments.forward = freeze(forward.builder, {});
    return fragments;
  }
  if (has_whole_backward(input_.plan->schedule)) lower_whole(stage, forward, fragments);
  if (has_split_backward(input_.plan->schedule)) lower_split(stage, forward, fragments);
  share_magnitudes(*input_.plan, Phase::kForward, forward.builder);
  if (input_.plan->overlap_weights) {
    FragmentBuilder first = forward.builder;
    const bool adapters = input_.workload->adapters.any();
    fragments.first_forward = freeze_with_away_state(*input_.plan,
                                                     {.activations = away_of(forward),
                                                      .first_of_step = true,
                                                      .refreshed = weights_before(stage),
                                                      .adapters_alone = adapters},
                                                     first);
  }
  hold_weights(stage, PassKind::kForward, false, forward, forward.builder, fragments);
  if (!fragments.forward) fragments.forward = freeze(forward.builder, away_of(forward));
  return fragments;
}

FragmentPtr FragmentStore::freeze(FragmentBuilder& builder, const std::set<std::uint32_t>& away) const {
  return freeze_with_away_state(*input_.plan, {.activations = away}, builder);
}

// Keys of the weights of those stages of its rank that a step runs forward before this one: with a table that
// both ends of the model use, the last stage meets what the first has brought.
std::set<std::uint32_t> FragmentStore::weights_before(const StageSpec& stage) {
  std::set<std::uint32_t> keys;
  std::set<int> chunks;
  if (placement_.chunks() == 1) return keys;
  const int rank = rank_of(stage);
  for (const Pass& pass : passes_of_rank(rank)) {
    if (!pass.runs_forward()) continue;
    if (pass.part.chunk == stage.chunk) break;
    if (!chunks.insert(pass.part.chunk).second) continue;
    StageSpec before = spec_of(rank, stage.shard, pass.part.chunk);
    before.step = stage.step, before.microbatch = stage.microbatch;
    before.packed = stage.packed, before.counted_tokens = stage.counted_tokens;
    const ForwardPass forward = lower_forward(input_, before, routes_);
    for (const Tensor& tensor : forward.builder.fragment().tensors)
      if (tensor.scope == Scope::kRank && tensor.memory == MemoryKind::kWeights) keys.insert(tensor.key);
  }
  return keys;
}

// Once the reverse pass has marked what the forward pass keeps.
std::set<std::uint32_t> FragmentStore::away_of(const ForwardPass& forward) const {
  return away_activations(*input_.plan, forward.builder.fragment());
}

void FragmentStore::lower_whole(const StageSpec& stage, ForwardPass& forward, StageFragments& fragments) {
  const auto reduce = [&](FragmentBuilder& builder, std::vector<StageParameter>& parameters) {
    write_gradient_reduction(builder, input_, parameters, false);
  };
  // Sharded sums end with their microbatch unless they gather whole, others with the last one.
  const bool each = input_.plan->zero >= 2 && !accumulates_whole(*input_.plan);
  BackwardPass backward = lower_backward(input_, stage, forward, "backward",
                                         each ? BackwardOptions{.after_block = reduce} : BackwardOptions{});
  if (each) write_gradient_reduction(backward.builder, input_, backward.parameters, true);
  share_magnitudes(*input_.plan, Phase::kBackward, backward.builder);
  fragments.parameters = backward.parameters;
  std::optional<BackwardPass> last;
  if (sums_with_last(*input_.plan)) {
    last = lower_backward(input_, stage, forward, "last backward", {.after_block = reduce});
    // What several stages of a rank may share waits for all of them.
    write_gradient_reduction(last->builder, input_, last->parameters, placement_.chunks() == 1);
    share_magnitudes(*input_.plan, Phase::kBackward, last->builder);
    fragments.parameters = last->parameters;
    if (!input_.plan->keeps_gathered())
      fragments.last_backward = freeze(last->builder, away_of(forward));
  }
  hold_reverse_weights(stage, forward, backward, last ? &*last : nullptr, fragments);
  if (!fragments.backward) fragments.backward = freeze(backward.builder, away_of(forward));
  if (!fragments.last_backward) fragments.last_backward = fragments.backward;
}

// Sharded sums that end with their microbatch: those of norms with the first part, the others with the
// second.
void FragmentStore::lower_split(const StageSpec& stage, ForwardPass& forward, StageFragments& fragments) {
  const auto reduce = [&](FragmentBuilder& builder, std::vector<StageParameter>& parameters) {
    write_gradient_reduction(builder, input_, parameters, false);
  };
  const auto reduce_all = [&](FragmentBuilder& builder, std::vector<StageParameter>& parameters) {
    write_gradient_reduction(builder, input_, parameters, true);
  };
  const bool each = input_.plan->zero >= 2 && !accumulates_whole(*input_.plan);
  BackwardOptions options{.after_block = {}, .after_inputs = {}, .split = true};
  if (each) options = {.after_block = reduce, .after_inputs = reduce_all, .split = true};
  BackwardPass backward = lower_backward(input_, stage, forward, "backward", options);
  if (each) write_gradient_reduction(*backward.weights, input_, backward.parameters, true);
  fragments.parameters = backward.parameters;
  std::optional<BackwardPass> last;
  if (sums_with_last(*input_.plan)) {
    last = lower_backward(input_, stage, forward, "last backward",
                          {.after_block = reduce, .after_inputs = {}, .split = true});
    write_gradient_reduction(*last->weights, input_, last->parameters, placement_.chunks() == 1);
    fragments.parameters = last->parameters;
    if (!input_.plan->keeps_gathered())
      fragments.last_weights = freeze(*last->weights, away_of(forward));
  }
  share_magnitudes(*input_.plan, Phase::kBackward, backward.builder);
  hold_reverse_weights(stage, forward, backward, last ? &*last : nullptr, fragments);
  if (!fragments.inputs) fragments.inputs = freeze(backward.builder, away_of(forward));
  if (!fragments.weights) fragments.weights = freeze(*backward.weights, away_of(forward));
  if (!fragments.last_weights) fragments.last_weights = fragments.weights;
}

// The chunks of a rank as its optimizer takes them: in the order of stages where two ranks hold the same
// ones, in that in which their sums end where updates follow it.
const std::vector<int>& FragmentStore::chunks_of_update(int rank) {
  std::vector<int>& chunks = chunks_of_update_[rank];
  if (!chunks.empty()) return chunks;
  if (updates_as_summed(*input_.plan) && !placement_.both_ways()) {
    for (const Pass& pass : passes_of_rank(rank))
      if (pass.last) chunks.push_back(pass.backward_part().chunk);
    return chunks;
  }
  for (int chunk = 0; chunk < placement_.chunks(); ++chunk) chunks.push_back(chunk);
  if (placement_.both_ways() && placement_.stage_of(rank, 0) > placement_.stage_of(rank, 1))
    std::reverse(chunks.begin(), chunks.end());
  return chunks;
}

// Of all stages of the rank; what they share, once.
FragmentPtr FragmentStore::optimizer(int rank, ShardPosition shard, int step) {
  FragmentPtr& known =
      optimizers_[Place{rank, 0, shard.tensor, shard.expert, shard.expert_part, shard.dense, 0}];
  if (known) return known;
  std::vector<StageParameter> parameters;
  StageSpec stage = spec_of(rank, shard, 0);
  for (const int chunk : chunks_of_update(rank)) {
    for (const StageParameter& parameter : fragments(rank, shard, step, {chunk, 0}).parameters) {
      const bool is_new =
          std::none_of(parameters.begin(), parameters.end(),
                       [&](const StageParameter& other) { return other.weight.key == parameter.weight.key; });
      if (is_new) parameters.push_back(parameter);
    }
    const StageSlice& slice = slices_[placement_.stage_of(rank, chunk)];
    stage.slice.has_embedding = stage.slice.has_embedding || slice.has_embedding;
    stage.slice.has_head = stage.slice.has_head || slice.has_head;
  }
  if (placement_.chunks() > 1) stage.stage = rank;
  FragmentBuilder builder = lower_optimizer(input_, stage, std::move(parameters));
  return known = freeze(builder, {});
}

void FragmentStore::forget(int step, int microbatch) {
  if (fixed_routes() && !packs()) return;
  const auto erased = std::erase_if(known_, [&](const auto& entry) {
    const int of_step = std::get<0>(entry.first), of_microbatch = std::get<1>(entry.first);
    return of_step < step || (of_step == step && of_microbatch == microbatch);
  });
  if (erased > 0) pairs_.clear();
}

}  // namespace moebius
