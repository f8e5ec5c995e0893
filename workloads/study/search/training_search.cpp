#include "workloads/study/search/training_search.h"

#include <algorithm>
#include <set>

#include "hw/error.h"
#include "workloads/study/search/document_changes.h"
#include "workloads/study/search/plan_bounds.h"
#include "workloads/study/search/plan_settings.h"
#include "workloads/study/search/search_course.h"

namespace moebius {
namespace {

class TrainingSearch {
 public:
  TrainingSearch(const Document& base, const SpaceFile& given, const SearchRequest& request)
      : request_(request),
        base_(base),
        space_(base, *request.library, given),
        score_(request.goal, space_.scenario(), request.data),
        bounds_(space_, score_, request.data, request.transfers),
        bounded_(request.prune && bounds_.hold()) {
    result_.subject = &training_subject();
    result_.goal = request.goal;
    result_.scenario = space_.scenario().name;
    result_.file = space_.scenario().file;
    result_.seed = space_.scenario().seed;
    if (space_.scenario().rl)
      result_.notes.emplace_back(
          "steps are those of training alone: rollout, scoring and the new weights' way come on top");
  }

  SearchResult run() {
    run_given();
    groups_ = space_.groups();
    for (const PlanGroup& group : groups_) result_.counts.legal += group.legal;
    result_.counts.groups = static_cast<std::int64_t>(groups_.size());
    course_.open_groups(groups_.size(), [&](std::size_t i) {
      return SearchEntry{.bound = bounded_ ? bounds_.of_group(groups_[i].degrees, true) : 0,
                         .group = static_cast<std::int32_t>(i)};
    });
    look_at_given_degrees();
    course_.look_for_best([&](const SearchEntry& entry) {
      const bool done = entry.level == kGroup && entry.group == given_group_;
      return done ? SearchNext{} : looked_at(entry);
    });
    // The finer clock only adds contention.
    course_.refine([&](const RankedPlan& plan) { return refined(plan); }, true);
    result_.counts.lowered = static_cast<std::int64_t>(bounds_.lowered());
    course_.count();
    return std::move(result_);
  }

 private:
  // What a bound is known of, from coarse to fine.
  enum Level : std::uint8_t { kGroup, kLayers, kVariant, kStages, kPlan, kRun };

  // ---- what a plan does ----

  // Nothing where it does not fit.
  std::optional<PlanFigures> carried_out(const Document& document, const StartExecutor& start) const {
    Job job = read_job(document, {}, *request_.library);
    if (job.memory && job.scenario.enforce_memory && !(job.memory->fits() && job.memory->fits_on_host()))
      return std::nullopt;
    job.scenario.timeline.detail = Detail::kNone;
    Hooks hooks;
    hooks.wants_spans = false;
    hooks.quiet = true;
    return score_.figures(perform(job, start, hooks).report);
  }

  std::optional<PlanFigures> refined(const RankedPlan& plan) const {
    return carried_out(changed(base_, plan.settings), request_.fine);
  }

  void run_given() {
    RankedPlan plan;
    plan.name = "as given";
    try {
      const std::optional<PlanFigures> rough = carried_out(base_, request_.rough);
      if (!rough) throw run_error("does not fit");
      plan.rough = *rough;
      if (request_.refine > 0) plan.fine = carried_out(base_, request_.fine);
      result_.given = plan;
    } catch (const Error& error) {
      result_.given_refusal = error.what();
    }
  }

  // ---- best first ----

  // A search that is ended early has something to show: plans with the degrees of the given one come first,
  // until there are a few.
  static constexpr int kFirst = 3;
  void look_at_given_degrees() {
    const std::optional<std::int32_t> group = group_of_given();
    if (!bounded_ || !group) return;
    SearchQueue near;
    near.push({.group = *group});
    course_.look(
        near, [&](const SearchEntry& entry) { return looked_at(entry); },
        [&] { return static_cast<int>(course_.found().size()) >= std::min(request_.top, kFirst); }, kFirst);
    for (; !near.empty(); near.pop()) course_.open().push(near.top());
    given_group_ = *group;
  }

  std::optional<std::int32_t> group_of_given() const {
    const TrainingPlan& plan = space_.scenario().plan;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const PlanDegrees& d = groups_[i].degrees;
      if (d.tp == plan.tp && d.dense_tp == plan.dense_degree() && d.expert_tp == plan.expert_tp &&
          d.pp == plan.pp && d.schedule == plan.schedule && d.chunks == plan.chunks && d.ep == plan.ep &&
          d.cp == plan.cp && d.tensor_overlap == (plan.tp_chunks > 0) && d.dp == 0 &&
          (d.tp == 1 || d.rows_cut == plan.sequence_parallel) &&
          d.micro_batch == space_.scenario().training.micro_batch)
        return static_cast<std::int32_t>(i);
    }
    return std::nullopt;
  }

  SearchNext looked_at(const SearchEntry& entry) {
    if (!bounded_ && entry.level != kGroup) return run_plan(entry);
    switch (entry.level) {
      case kGroup:
        if (!bounded_) return variants_of(entry);
        return {{{std::max(entry.bound, bounds_.of_group(groups_[entry.group].degrees, false)), 0, kLayers,
                  entry.group, 0}},
                {}};
      case kLayers:
        return variants_of(entry);
      case kVariant:
        return roomy(entry);
      case kStages:
        return plans_of(entry);
      case kPlan:
        return bounded_plan(entry);
      case kRun:
        return run_plan(entry);
    }
    return {};
  }

  // The group's bundles by what they compute; or, without bounds, all of them.
  SearchNext variants_of(const SearchEntry& entry) {
    const PlanDegrees& degrees = groups_[entry.group].degrees;
    SearchNext next;
    std::set<int> variants;
    const auto legal = space_.legal_bundles(degrees);
    for (const int bundle : *legal) {
      if (!bounded_) {
        next.entries.push_back({0, 0, kRun, entry.group, bundle});
        continue;
      }
      const int variant = space_.variants()[bundle];
      if (!variants.insert(variant).second) continue;
      const double bound = std::max(entry.bound, bounds_.of_variant(degrees, bundle));
      next.entries.push_back({bound, 0, kVariant, entry.group, bundle});
    }
    return next;
  }

  std::vector<int> of_variant(const SearchEntry& entry) const {
    std::vector<int> bundles;
    const auto legal = space_.legal_bundles(groups_[entry.group].degrees);
    for (const int bundle : *legal) {
      if (space_.variants()[bundle] == space_.variants()[entry.bundle]) bundles.push_back(bundle);
    }
    return bundles;
  }

  // A variant of which nothing fits, by what single layers hold, is not lowered.
  SearchNext roomy(const SearchEntry& entry) {
    const std::vector<int> bundles = of_variant(entry);
    const std::vector<int> fit = bounds_.with_room(groups_[entry.group].degrees, bundles);
    if (fit.empty()) return {{}, {}, static_cast<std::int64_t>(bundles.size())};
    const double bound = bounds_.of_rank(groups_[entry.group].degrees, entry.bundle);
    return {{{std::max(entry.bound, bound), 0, kStages, entry.group, entry.bundle}}, {}};
  }

  // Of one variant: its bundles that can fit.
  SearchNext plans_of(const SearchEntry& entry) {
    const PlanDegrees& degrees = groups_[entry.group].degrees;
    const std::vector<int> bundles = of_variant(entry), fit = bounds_.with_room(degrees, bundles);
    const PlanBounds::Stages variant = bounds_.of_stages(degrees, entry.bundle);
    SearchNext next;
    next.too_large = static_cast<std::int64_t>(bundles.size() - fit.size());
    for (const int bundle : fit) {
      if (bounds_.too_large(variant, space_.plan_of(degrees, bundle).plan)) {
        ++next.too_large;
        continue;
      }
      next.entries.push_back({std::max(entry.bound, variant.score), 0, kPlan, entry.group, bundle});
    }
    return next;
  }

  // With its own shards and what it keeps on the host.
  SearchNext bounded_plan(const SearchEntry& entry) {
    const PlanBounds::Plan plan = bounds_.of_plan(groups_[entry.group].degrees, entry.bundle);
    SearchNext next;
    if (plan.too_large)
      ++next.too_large;
    else
      next.entries.push_back({std::max(entry.bound, plan.score), 0, kRun, entry.group, entry.bundle});
    return next;
  }

  // Which switches go with which degrees is told by few of them: the reader may still refuse one, which says
  // nothing against the others.
  SearchNext run_plan(const SearchEntry& entry) {
    try {
      return run_legal(entry);
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::kInput) throw;
      SearchNext next;
      next.refusal = error.what();
      return next;
    }
  }

  SearchNext run_legal(const SearchEntry& entry) {
    const PlanDegrees& degrees = groups_[entry.group].degrees;
    SearchNext next;
    const std::optional<PlanFigures> figures =
        carried_out(space_.document(degrees, entry.bundle), request_.rough);
    if (!figures) {
      ++next.too_large;
      return next;
    }
    const TrainingSpace::Legal legal = space_.plan_of(degrees, entry.bundle);
    RankedPlan plan{.name = degrees_text(degrees, legal.plan.dp) + " · " + bundle_text(legal.plan) +
                            space_.given_text(entry.bundle),
                    .settings = space_.settings(degrees, entry.bundle),
                    .bound = entry.bound,
                    .rough = *figures,
                    .fine = {}};
    next.found.push_back(std::move(plan));
    next.ran = 1;
    return next;
  }

  const SearchRequest& request_;
  const Document& base_;
  TrainingSpace space_;
  PlanScore score_;
  PlanBounds bounds_;
  bool bounded_;
  SearchResult result_;
  SearchCourse course_{request_, result_};
  std::vector<PlanGroup> groups_;
  std::int32_t given_group_ = -1;  // has been looked at
};

}  // namespace

SearchResult search_training(const Document& base, const SpaceFile& space, const SearchRequest& request) {
  return TrainingSearch(base, space, request).run();
}

}  // namespace moebius
