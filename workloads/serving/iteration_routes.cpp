#include "workloads/serving/iteration_routes.h"

#include <algorithm>

#include "workloads/routing/drawn_routes.h"
#include "workloads/serving/carried/popularity_book.h"
#include "workloads/serving/cut_prompts.h"
#include "workloads/serving/shared_experts.h"

namespace moebius {
namespace {

// Where all experts are equally likely and get that many rows each, what is drawn differs from what is dealt
// by an eighth (1 / sqrt(64)) for one of them, and by nothing for their sum.
bool as_good_as_even(const RouteSpec& spec) {
  constexpr std::int64_t kRowsOfExpert = 64;
  if (spec.popularity.kind != PopularityKind::kZipf || spec.popularity.exponent != 0) return false;
  std::int64_t tokens = 0;
  for (const TokenRun& run : spec.runs.list()) tokens += run.count;
  return tokens * spec.active >= kRowsOfExpert * spec.experts;
}

bool leaves_experts_out(const RouteSpec& spec) {
  std::int64_t tokens = 0;
  for (const TokenRun& run : spec.runs.list()) tokens += run.count;
  if (spec.runs.empty()) tokens = std::int64_t{spec.tokens} * spec.ranks;
  return tokens * (spec.active - spec.always) < spec.experts - spec.always;
}

// How many experts tokens choose among, where that many slots hold them.
int experts_of(const ExpertSlotsPtr& placed, int slots) {
  if (!placed) return slots;
  return 1 + *std::max_element(placed->expert_of_slot.begin(), placed->expert_of_slot.end());
}

// Counts alone: equal iterations share a route.
void deal_evenly(RouteSpec& spec) {
  std::vector<TokenRun> counts;
  for (const TokenRun& run : spec.runs.list()) {
    if (counts.empty() || counts.back().source != run.source) counts.push_back({run.source, 0, 0, 0});
    counts.back().count += run.count;
  }
  spec.runs = TokenRuns(std::move(counts));
  spec.popularity = {};
}

}  // namespace

std::int32_t choosing_rows(const Batch& batch) {
  std::int64_t rows = batch.rows(), padding = 0;
  for (const BatchSequence& s : batch.sequences)
    if (s.request < 0) padding += s.count;
  return static_cast<std::int32_t>(rows - std::max<std::int64_t>(0, padding - 1));
}

void vary_by_layer(RouteSpec& spec) {
  constexpr std::uint64_t kDeck = 0x6465636b;
  if (!leaves_experts_out(spec)) return;
  spec.seed = random_bits(spec.seed, kDeck, static_cast<std::uint64_t>(spec.layer));
}

IterationRoutes::IterationRoutes(const ServingJob& job, std::shared_ptr<RouteCache> balanced)
    : job_(job),
      balanced_(balanced ? std::move(balanced) : std::make_shared<RouteCache>()),
      course_(job.workload.popularity, job.workload.seed, job.model.experts.routed,
              job.model.experts.active - job.model.experts.always),
      even_slots_(even_slots(job.plan, job.model.experts)) {}

RoutePtr DrawnRoutes::get(const RouteSpec& spec) {
  for (const RoutePtr& route : routes_)
    if (route->spec() == spec) return route;
  if (routes_.size() == kMost) routes_.erase(routes_.begin());
  routes_.push_back(drawn_route(spec));
  return routes_.back();
}

void IterationRoutes::begin(const std::vector<BatchPtr>& batches) {
  const ServingPlan& plan = job_.plan;
  batches_ = batches;
  cut_ = plan.sequence_parallel(false) || plan.sequence_parallel(true) ? cut_rows(batches, plan.tp)
                                                                       : std::vector<BatchPtr>();
  decodes_.clear();
  for (const BatchPtr& batch : batches) decodes_.push_back(plan.decodes(*batch));
  runs_.clear();
  routes_.clear();
  versions_.clear();
  if (popularities_ != nullptr && popularities_->changes()) find_versions();
}

void IterationRoutes::find_versions() {
  for (const BatchPtr& batch : batches_)
    for (const BatchSequence& s : batch->sequences)
      for (const NamedPiece& piece : prompts_->pieces(s.request, s.past, s.count))
        versions_.push_back(popularities_->version_of(piece.name));
  std::sort(versions_.begin(), versions_.end());
  versions_.erase(std::unique(versions_.begin(), versions_.end()), versions_.end());
}

int IterationRoutes::popularity_of(std::int32_t name) const {
  if (versions_.empty()) return 0;
  const int version = popularities_->version_of(name);
  return static_cast<int>(std::lower_bound(versions_.begin(), versions_.end(), version) - versions_.begin());
}

const Batch& IterationRoutes::batch_of(int group, int member) const {
  const int rank = group * job_.plan.ranks_of_route() + member, replica = rank / job_.plan.tp;
  return job_.plan.sequence_parallel(decodes_[replica]) ? *cut_[rank] : *batches_[replica];
}

// In one phase or the other ranks of a single replica alone share experts differently.
ExpertSharing IterationRoutes::sharing(int group) const {
  return job_.plan.sharing(decodes_[group * job_.plan.ranks_of_route() / job_.plan.tp]);
}

// Ranks of one replica have the same tokens: they count once.
int IterationRoutes::members(int group) const {
  return sharing(group) == ExpertSharing::kAllReduce ? 1 : job_.plan.ranks_of_route();
}

// What ranks gather has one.
int IterationRoutes::source_of(int member) const {
  return job_.plan.shares_by(ExpertSharing::kGather) ? 0 : member;
}

std::int32_t IterationRoutes::rows_of(int group, const Batch& batch) const {
  return places_padding_ && sharing(group) != ExpertSharing::kAllReduce
             ? static_cast<std::int32_t>(batch.rows())
             : choosing_rows(batch);
}

std::int32_t IterationRoutes::repeated_rows(int group, int member) const {
  const ServingPlan& plan = job_.plan;
  const int rank = group * plan.ranks_of_route() + member, replica = rank / plan.tp;
  if (!plan.sequence_parallel(decodes_[replica])) return 0;
  const std::int64_t rows = batches_[replica]->rows(), share = rows_of_part(rows, plan.tp);
  const std::int64_t first = rank % plan.tp * share;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(first - (rows - share), 0, share));
}

std::int64_t IterationRoutes::longest(int group) const {
  std::int64_t rows = 0;
  for (int member = 0; member < members(group); ++member)
    rows = std::max(rows, batch_of(group, member).rows());
  return rows;
}

// Balanced routes do not see whose tokens they are: counts alone, so that equal iterations share a route.
TokenRuns IterationRoutes::runs_of(int group) const {
  const bool balanced = job_.workload.popularity.kind == PopularityKind::kBalanced;
  std::vector<TokenRun> runs;
  for (int member = 0; member < members(group); ++member) {
    const Batch& batch = batch_of(group, member);
    const int source = source_of(member);
    if (balanced) {
      runs.push_back({source, 0, 0, rows_of(group, batch)});
      continue;
    }
    for (const BatchSequence& s : batch.sequences) add_runs(source, s, runs);
  }
  return TokenRuns(std::move(runs));
}

void IterationRoutes::add_runs(int source, const BatchSequence& s, std::vector<TokenRun>& runs) const {
  if (prompts_ == nullptr && s.request < 0) {
    runs.insert(runs.end(), s.count, {source, s.request, 0, 1});
    return;
  }
  if (prompts_ == nullptr) return runs.push_back({source, s.request, s.past, s.count});
  for (const NamedPiece& piece : prompts_->pieces(s.request, s.past, s.count))
    runs.push_back({source, piece.name, piece.first, piece.count, popularity_of(piece.name)});
}

RouteSpec IterationRoutes::spec_of(int group, int layer) {
  auto& [runs, most] = runs_[group];
  const bool balanced = job_.workload.popularity.kind == PopularityKind::kBalanced;
  if (runs.empty()) {
    runs = runs_of(group);
    std::vector<int> rows(members(group));
    for (int member = 0; member < members(group); ++member) {
      const Batch& batch = batch_of(group, member);
      rows[source_of(member)] += balanced ? rows_of(group, batch) : static_cast<int>(batch.rows());
    }
    most = *std::max_element(rows.begin(), rows.end());
  }
  const Experts& experts = job_.model.experts;
  const bool draws_always = loads_ != nullptr && loads_->draws_always;
  const ExpertSlotsPtr placed = draws_always ? ExpertSlotsPtr() : even_slots_;
  const int always = draws_always ? 0 : experts.always;
  const int slots = places_ ? experts.routed : experts_of(placed, job_.plan.slots_of(experts));
  const ExpertSharing how = sharing(group);
  const bool keeps_own = how == ExpertSharing::kAlone || how == ExpertSharing::kDispatch;
  const bool grouped = (slots - always) % experts.groups == 0;
  RouteSpec spec{.seed = job_.workload.seed,
                 .layer = layer,
                 .popularity = job_.workload.popularity,
                 .weights = course_.at(layer, 0),
                 .ranks = job_.plan.ep,
                 .ranks_per_node = job_.ranks_per_node,
                 .experts = slots,
                 .active = experts.active,
                 .always = always,
                 .always_at_home = job_.plan.shared_copies > 0 && keeps_own,
                 .groups = grouped ? experts.groups : 1,
                 .active_groups = grouped ? experts.active_groups : 1,
                 .tokens = most,
                 .runs = runs,
                 .placed = placed};
  for (const int version : versions_) spec.popularities.push_back(popularities_->weights(version, layer));
  if (places_) spec.placed = places_(layer);
  return spec;
}

// Tokens without names, where all sources have as many; otherwise the first ones of a request a source. Rows
// that ranks repeat are padding: all are one token.
TokenRuns IterationRoutes::counted_runs(int group, int& most) const {
  std::vector<TokenRun> runs;
  const bool gathers = sharing(group) == ExpertSharing::kGather;
  bool equal = !gathers;
  for (int member = 0; member < members(group); ++member) {
    const int source = source_of(member);
    const std::int32_t rows = rows_of(group, batch_of(group, member)),
                       alike = std::min(rows, repeated_rows(group, member));
    if (rows > alike) runs.push_back({source, member, 0, rows - alike});
    runs.insert(runs.end(), alike, {source, -1, 0, 1});
    most = gathers ? most + rows : std::max(most, rows);
    equal = equal && alike == 0 && rows == runs.front().count;
  }
  return equal && members(group) == job_.plan.ep ? TokenRuns() : TokenRuns(std::move(runs));
}

RoutePtr IterationRoutes::drawn(int group, int layer) {
  const int draw = loads_->draws > 0 ? layer % loads_->draws : layer;
  RoutePtr& route = routes_[{group, draw}];
  if (route) return route;
  RouteSpec spec = spec_of(group, draw);
  spec.popularity = {};
  spec.popularity.kind = PopularityKind::kDirichlet;
  const int of = loads_->draws > 0 ? draw : layer;
  spec.weights = loads_->weights[loads_->weights.size() > 1 ? of : 0];
  spec.groups = loads_->groups;
  spec.active_groups = loads_->active_groups;
  spec.tokens = 0;
  spec.runs = counted_runs(group, spec.tokens);
  return route = loads_->known ? loads_->known->get(spec) : drawn_route(spec);
}

RoutePtr IterationRoutes::get(int group, int layer) {
  if (loads_ != nullptr && !loads_->weights.empty()) return drawn(group, layer);
  const auto known = routes_.find({group, layer});
  if (known != routes_.end()) return known->second;
  RouteSpec spec = spec_of(group, layer);
  if (loads_ != nullptr) {
    spec.popularity = {};
    spec.groups = loads_->groups;
    spec.active_groups = loads_->active_groups;
  }
  if (as_good_as_even(spec)) deal_evenly(spec);
  const bool balanced = spec.popularity.kind == PopularityKind::kBalanced;
  if (balanced) vary_by_layer(spec);
  return routes_[{group, layer}] = balanced ? balanced_->get(spec) : drawn_route(spec);
}

}  // namespace moebius
