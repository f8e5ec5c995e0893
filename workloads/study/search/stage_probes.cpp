#include "workloads/study/search/stage_probes.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/measured_stacks.h"
#include "workloads/scenario/placement_keys.h"
#include "workloads/study/search/lone_stage.h"
#include "workloads/study/search/probe_keys.h"
#include "workloads/training/pipeline/two_batch.h"
#include "workloads/training/state/away_state.h"
#include "workloads/training/state/optimizer.h"

namespace moebius {
namespace {

std::unique_ptr<CostSource> costs_of(const Scenario& scenario, const std::string& data) {
  const Accelerator& chip = scenario.cluster->pools.front().accelerator;
  const std::vector<Profile> profiles = profiles_for(scenario, chip, data);
  return make_cost_source(chip, profiles, kernels_for(scenario, profiles), product_scales(scenario));
}

constexpr const char* kTimesAlone = "t";  // ends the key of a chunk that was not weighed

void weigh(const Fragment& fragment, std::set<std::uint32_t>& seen, ChunkFacts& facts) {
  for (const Tensor& tensor : fragment.tensors) {
    if (tensor.scope != Scope::kRank || tensor.on_host || !seen.insert(tensor.key).second) continue;
    const bool routed = tensor.role == Role::kExpertGateUp || tensor.role == Role::kExpertDown;
    ChunkFacts::Held& held = routed ? facts.experts : facts.dense;
    double& bytes = tensor.memory == MemoryKind::kWeights     ? held.weights
                    : tensor.memory == MemoryKind::kGradients ? held.gradients
                                                              : held.states;
    bytes += tensor.bytes().value;
  }
}

double kept_bytes(const Fragment& fragment, std::set<std::uint32_t>& seen) {
  double bytes = 0;
  for (const Tensor& tensor : fragment.tensors) {
    if (tensor.scope == Scope::kMicrobatch && !tensor.on_host && seen.insert(tensor.key).second)
      bytes += tensor.bytes().value;
  }
  return bytes;
}

double released_bytes(const Fragment& fragment) {
  double bytes = 0;
  for (const std::int32_t tensor : released(fragment)) {
    if (!fragment.tensors[tensor].on_host) bytes += fragment.tensors[tensor].bytes().value;
  }
  return bytes;
}

// What is lowered: recomputation that differs by layer takes and holds at least what none does, but for what
// goes to the host: what is computed again is not copied. The reverse pass that also reduces gradients is one
// of many.
TrainingPlan as_lowered(TrainingPlan plan) {
  if (!layers_stand_alone(plan)) {
    plan.recompute = RecomputePolicy::kNone;
    plan.offload.activations = false;
  }
  plan.overlap_gradients = false;
  return plan;
}

Layout folded_layout(TrainingPlan plan) {
  plan.fold = true;
  return make_layout(plan);
}

// Whether neighbours of a pipeline may share a node: then those of the first stages do.
bool meets_inside(const TrainingPlan& plan, int node) {
  return plan.pp > 1 && plan.tp * plan.cp * plan.dp < node;
}

// Ranks of any stage, by their bytes: a message takes the shortest way that one of the pipeline has. In a
// ring the first stage's own neighbour before is the last one.
RankClass of_any_stage(const TrainingPlan& plan) {
  RankClass ranks = folded_layout(plan).classes.front();
  for (const GroupRole role : {GroupRole::kNext, GroupRole::kPrevious}) {
    std::vector<std::int32_t>& pair = ranks.groups[static_cast<int>(role)].ranks;
    if (pair.size() == 2) pair = {0, plan.tp * plan.cp * plan.dp};
  }
  return ranks;
}

std::shared_ptr<const ChunkFacts> in_two_parts(const ChunkFacts& whole) {
  auto facts = std::make_shared<ChunkFacts>(whole);
  facts->weights.way[PassMap::kLane][PassMap::kLaneEnd] = whole.backward.busy();
  return facts;
}

}  // namespace

double ChunkFacts::state_bytes() const {
  return dense.weights + dense.gradients + dense.states + experts.weights + experts.gradients +
         experts.states;
}

const PassMap& PlanFacts::Rank::of(const Pass& pass) const {
  const ChunkFacts& mine = *chunks[pass.part.chunk];
  switch (pass.kind) {
    case PassKind::kForward:
      return mine.forward;
    case PassKind::kBackward:
      return mine.backward;
    case PassKind::kBackwardInput:
      return mine.inputs;
    case PassKind::kBackwardWeight:
      return mine.weights;
    case PassKind::kPair:
      return *pairs.at({pass.part.chunk, pass.backward.chunk});
    case PassKind::kOptimizer:
    case PassKind::kLoad:
      break;
  }
  return mine.forward;
}

// What stays the same while one plan is looked at.
struct StageProbes::Asked {
  const TrainingPlan& plan;
  TrainingWorkload workload;
  std::string key;
  RankClass ranks;
  bool near = false;  // messages may stay inside a node
  std::string place;  // what transfers take depends on beside it; empty: they count by their bytes
  std::shared_ptr<TransferTimes> transfers;
  LoweringInput lowering;
  FragmentStore store;
  Costing costing = Costing::kAsPlanned;
  bool weighed = true;
  mutable std::map<std::string, StageFragments> lowered;  // by stage_key(scenario_.model, )

  Asked(const Scenario& scenario, const TrainingPlan& given, const TrainingWorkload& work,
        std::vector<StageSlice> slices)
      : plan(given),
        workload(work),
        key(lowering_key(given, work)),
        ranks(of_any_stage(given)),
        near(meets_inside(given, scenario.cluster->pools.front().node.accelerators)),
        lowering{&scenario.model, &plan, &workload, scenario.cluster->pools.front().node.accelerators},
        store(lowering, std::move(slices)) {
    workload.popularity = {};
  }

  std::string place_of(int rank) const {
    return transfers ? fmt::format("@{} {}:", place, rank)
                     : fmt::format("@{}{}:", place, near ? " near" : "");
  }
};

StageProbes::StageProbes(const Scenario& scenario, const std::string& data, KnowTransfers transfers)
    : scenario_(scenario), source_(costs_of(scenario, data)) {
  if (!placement_of(scenario).any()) know_transfers_ = std::move(transfers);
}

std::shared_ptr<TransferTimes> StageProbes::transfers_of(const TrainingPlan& plan) {
  if (!know_transfers_) return nullptr;
  const std::string key = groups_key(plan);
  {
    const std::lock_guard lock(mutex_);
    const auto known = transfers_.find(key);
    if (known != transfers_.end()) return known->second;
  }
  std::shared_ptr<TransferTimes> made = know_transfers_(*scenario_.cluster, folded_layout(plan));
  constexpr std::size_t kKept = 64;  // plans that are looked at one after the other are of like groups
  const std::lock_guard lock(mutex_);
  if (transfers_.size() >= kKept) transfers_.clear();
  return transfers_[key] = made;
}

// Routes of experts that are not asked for alike are others than those that are looked at here.
void StageProbes::raise_transfers(const Asked& asked, int rank, const Fragment& fragment,
                                  std::vector<double>& seconds) const {
  const bool alike = scenario_.training.popularity.kind == PopularityKind::kBalanced;
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    const Op& op = fragment.ops[i];
    if (!is_communication(op.kind) || op.kind == OpKind::kRecv || (op.route >= 0 && !alike)) continue;
    const bool meets = is_host_copy(op.kind) || asked.ranks.group(op.group).ranks.size() > 1;
    if (meets) seconds[i] = std::max(seconds[i], asked.transfers->alone(fragment, static_cast<int>(i), rank));
  }
}

std::unique_ptr<RememberedCosts> StageProbes::take_costs() {
  const std::lock_guard lock(mutex_);
  if (costs_.empty()) return std::make_unique<RememberedCosts>(*source_);
  std::unique_ptr<RememberedCosts> costs = std::move(costs_.back());
  costs_.pop_back();
  return costs;
}

void StageProbes::give_back(std::unique_ptr<RememberedCosts> costs) {
  const std::lock_guard lock(mutex_);
  costs_.push_back(std::move(costs));
}

std::shared_ptr<const std::vector<StageSlice>> StageProbes::slices(const TrainingPlan& plan) {
  const std::pair<Slicing, int> cut{plan.slicing, StagePlacement(plan).stages()};
  {
    const std::lock_guard lock(mutex_);
    const auto known = slices_.find(cut);
    if (known != slices_.end() && plan.layers.empty()) return known->second;
  }
  auto made = std::make_shared<const std::vector<StageSlice>>(
      slices_of(scenario_.model, plan, scenario_.training.sequence_length));
  const std::lock_guard lock(mutex_);
  if (plan.layers.empty()) slices_[cut] = made;
  return made;
}

std::vector<double> StageProbes::least_of(const Asked& asked, const Fragment& fragment) {
  std::unique_ptr<RememberedCosts> costs = take_costs();
  const LeastSeconds least(*scenario_.cluster, scenario_.cluster->pools.front(), *costs, asked.costing);
  std::vector<double> seconds = least.of(fragment, asked.ranks);
  give_back(std::move(costs));
  return seconds;
}

PassMap StageProbes::map_of(const Asked& asked, int rank, const FragmentPtr& fragment) {
  if (!fragment) return {};
  std::vector<double> seconds = least_of(asked, *fragment);
  if (asked.transfers) raise_transfers(asked, rank, *fragment, seconds);
  return pass_map(*fragment, seconds);
}

const StageFragments& StageProbes::lower(const Asked& asked, const StageSpec& spec) {
  const std::string stage = stage_key(scenario_.model, spec);
  const auto lowered = asked.lowered.find(stage);
  if (lowered != asked.lowered.end()) return lowered->second;
  const TrainingPlan& plan = asked.plan;
  const std::string key = fmt::format("{} {} {} {}", plan.ep, plan.expert_tp, plan.nodes_per_token,
                                      tokens_per_rank(asked.lowering));
  FragmentStore store(asked.lowering, asked.store.slices());
  {
    const std::lock_guard lock(mutex_);
    const auto known = routes_.find(key);
    if (known != routes_.end()) store.use(known->second);
  }
  const StageFragments& made = asked.lowered[stage] = store.lower(spec);
  const std::lock_guard lock(mutex_);
  routes_[key] = store.routes();
  return made;
}

// Transfers by their bytes: the stages of a rank share collectives, each of which starts but once.
void StageProbes::time_update(const Asked& asked, const Fragment& update, ChunkFacts& facts) {
  const std::vector<double> seconds = least_of(asked, update);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const Op& op = update.ops[i];
    if (op.lane == Lane::kCompute) facts.update_s += seconds[i];
    if (op.lane == Lane::kDataComm)
      (op.phase == Phase::kGradients ? facts.sums_s : facts.gathers_s) += seconds[i];
  }
}

std::shared_ptr<const ChunkFacts> StageProbes::measured(const Asked& asked, int rank, const StageSpec& spec) {
  const StageFragments& all = lower(asked, spec);
  auto facts = std::make_shared<ChunkFacts>();
  facts->forward = map_of(asked, rank, all.forward);
  facts->backward = map_of(asked, rank, all.backward);
  facts->inputs = map_of(asked, rank, all.inputs);
  facts->weights = map_of(asked, rank, all.weights);
  if (!asked.weighed) return facts;
  std::set<std::uint32_t> stay, kept;
  for (const FragmentPtr& each : {all.forward, all.backward, all.inputs, all.weights}) {
    if (each) weigh(*each, stay, *facts);
  }
  facts->kept = kept_bytes(*all.forward, kept);
  if (all.weights) facts->left = released_bytes(*all.weights);
  if (asked.workload.forward_only) return facts;
  FragmentBuilder builder = lower_optimizer(asked.lowering, spec, all.parameters);
  const FragmentPtr update = freeze_with_away_state(asked.plan, {}, builder);
  weigh(*update, stay, *facts);
  time_update(asked, *update, *facts);
  return facts;
}

// One that was weighed will do for who asks for times alone.
std::shared_ptr<const ChunkFacts> StageProbes::known_chunk(const Asked& asked, const std::string& key) {
  const std::lock_guard lock(mutex_);
  auto known = chunks_.find(key);
  if (known == chunks_.end() && !asked.weighed) known = chunks_.find(key + kTimesAlone);
  return known == chunks_.end() ? nullptr : known->second;
}

std::shared_ptr<const ChunkFacts> StageProbes::chunk(const Asked& asked, int rank, const StageSpec& spec) {
  const std::string key = asked.key + "+" + std::to_string(static_cast<int>(asked.costing)) +
                          asked.place_of(rank) + stage_key(scenario_.model, spec);
  if (std::shared_ptr<const ChunkFacts> known = known_chunk(asked, key)) return known;
  std::shared_ptr<const ChunkFacts> made = measured(asked, rank, spec);
  const std::lock_guard lock(mutex_);
  // Two who ask at one time both make it, and who asks for times alone may come first: it counts once.
  lowered_ += chunks_.contains(key) || chunks_.contains(key + kTimesAlone) ? 0 : 1;
  return chunks_.emplace(asked.weighed ? key : key + kTimesAlone, std::move(made)).first->second;
}

std::shared_ptr<const PassMap> StageProbes::pair(const Asked& asked, int rank, const StageSpec& forward,
                                                 const StageSpec& backward) {
  const std::string key = asked.key + asked.place_of(rank) + stage_key(scenario_.model, forward) +
                          stage_key(scenario_.model, backward);
  {
    const std::lock_guard lock(mutex_);
    const auto known = pairs_.find(key);
    if (known != pairs_.end()) return known->second;
  }
  const FragmentPtr ahead = lower(asked, forward).forward, back = lower(asked, backward).backward;
  auto made = std::make_shared<const PassMap>(map_of(asked, rank, overlap(*back, *ahead)));
  const std::lock_guard lock(mutex_);
  return pairs_.emplace(key, std::move(made)).first->second;
}

PlanFacts::Rank StageProbes::rank_facts(const Asked& asked, int rank, const ChunkPairs& pairs) {
  const auto spec = [&](int chunk) { return asked.store.spec_of(rank, {}, chunk); };
  PlanFacts::Rank of;
  for (int i = 0; i < asked.store.placement().chunks(); ++i) of.chunks.push_back(chunk(asked, rank, spec(i)));
  for (const auto& [i, j] : pairs) of.pairs[{i, j}] = pair(asked, rank, spec(i), spec(j));
  return of;
}

StageSpec StageProbes::lone(const Asked& asked, const StageSlice& slice) {
  StageSpec spec = asked.store.spec_of(0, {}, 0);
  spec.slice = slice;
  spec.previous = spec.next = GroupRole::kNone;
  return spec;
}

PlanFacts::Rank StageProbes::rank_passes(const TrainingPlan& given, const TrainingWorkload& workload,
                                         int rank, const ChunkPairs& pairs) {
  const StagePlacement placement(given);
  const std::shared_ptr<const std::vector<StageSlice>> all = slices(given);
  const bool paired = runs_pairs(given);
  const TrainingPlan plan = lone_stage(as_lowered(given));
  Asked asked(scenario_, plan, workload, std::vector<StageSlice>(1));
  asked.weighed = false;
  const auto spec = [&](int i) { return lone(asked, (*all)[placement.stage_of(rank, i)]); };
  PlanFacts::Rank of;
  for (int i = 0; i < placement.chunks(); ++i) {
    const std::shared_ptr<const ChunkFacts> whole = chunk(asked, rank, spec(i));
    of.chunks.push_back(paired ? in_two_parts(*whole) : whole);
  }
  for (const auto& [i, j] : pairs) of.pairs[{i, j}] = pair(asked, rank, spec(i), spec(j));
  return of;
}

PlanFacts StageProbes::facts(const TrainingPlan& given, const TrainingWorkload& workload,
                             Transfers transfers) {
  const TrainingPlan plan = as_lowered(given);
  Asked asked(scenario_, plan, workload, *slices(plan));
  if (transfers == Transfers::kNetwork) asked.transfers = transfers_of(plan);
  // Where nobody tells what the network takes, sums of gradients count by the groups that they are over.
  if (asked.transfers || !know_transfers_) asked.place = groups_key(plan);
  const int chunks = asked.store.placement().chunks();
  ChunkPairs pairs;
  for (int i = 0; runs_pairs(plan) && i < chunks; ++i)
    for (int j = 0; j < chunks; ++j) pairs.insert({i, j});
  PlanFacts facts;
  facts.sums_last = !given.overlap_gradients;
  facts.shares_ends = scenario_.model.tied_embeddings || scenario_.model.mtp_layers > 0;
  for (int rank = 0; rank < plan.pp; ++rank) facts.ranks.push_back(rank_facts(asked, rank, pairs));
  return facts;
}

std::shared_ptr<const ChunkFacts> StageProbes::part(const TrainingPlan& given,
                                                    const TrainingWorkload& workload, const StageSlice& slice,
                                                    Costing costing, bool weighed) {
  const TrainingPlan plan = as_lowered(given);
  const int stages = StagePlacement(plan).stages();
  Asked asked(scenario_, plan, workload, std::vector<StageSlice>(stages));
  asked.costing = costing;
  asked.weighed = weighed;
  return chunk(asked, 0, lone(asked, slice));
}

}  // namespace moebius
