#include "workloads/study/search/training_search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <queue>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/mixed_pools.h"
#include "workloads/crew.h"
#include "workloads/study/search/group_bound.h"
#include "workloads/study/search/held_bound.h"
#include "workloads/study/search/plan_score.h"
#include "workloads/study/search/plan_settings.h"
#include "workloads/study/search/step_bound.h"

namespace moebius {
namespace {

// What a bound is known of, from coarse to fine.
enum class Level : std::uint8_t { kGroup, kVariant, kPlan, kRun };

struct Entry {
  double bound = 0;
  Level level = Level::kGroup;
  std::int32_t group = 0, bundle = 0;

  bool operator>(const Entry& other) const {
    return std::tie(bound, other.level, group, bundle) > std::tie(other.bound, level, other.group, other.bundle);
  }
};

// Whether lower bounds hold: they are told for one kind of chip, whole rows and one step's job.
bool can_bound(const Scenario& scenario) {
  return !scenario.training.lengths && !scenario.training.forward_only && !several_kinds(*scenario.cluster) &&
         !scenario.cluster->exchange && !scenario.plan.uneven_batches();
}

// The plan without what only adds to a step: shards, host memory. What of it is computed stays.
TrainingPlan stripped(TrainingPlan plan) {
  plan.zero = plan.shard = 0;
  plan.offload = {};
  return plan;
}

class TrainingSearch {
 public:
  TrainingSearch(const Document& base, const SpaceFile& given, const SearchRequest& request)
      : request_(request),
        base_(base),
        space_(base, *request.library, given, request.goal != SearchGoal::kStepTime),
        score_(request.goal, space_.scenario()),
        probes_(space_.scenario(), request.data),
        layers_(space_.scenario(), probes_),
        bounded_(request.prune && can_bound(space_.scenario())) {
    result_.goal = request.goal;
    result_.scenario = space_.scenario().name;
    result_.file = space_.scenario().file;
    result_.seed = space_.scenario().seed;
    result_.devices = space_.scenario().cluster->pools.front().devices();
  }

  SearchResult run() {
    run_given();
    trace("given");
    groups_ = space_.groups();
    trace("groups");
    for (const PlanGroup& group : groups_) result_.counts.legal += group.legal;
    result_.counts.groups = static_cast<std::int64_t>(groups_.size());
    bound_groups();
    trace("bounds");
    look_for_best();
    trace("best");
    refine();
    trace("refined");
    count();
    return std::move(result_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void trace(const char* what) {
    if (!getenv("SEARCH_TRACE")) return;
    RunFacts use;
    add_process_use(use, started_);
    fmt::print(stderr, "TRACE {} wall {:.1f} cpu {:.1f} groups {} looked {} {} {} {} ran {} large {} lowered {} open {} top {} limit {}\n", what, use.wall_s, use.cpu_s,
               groups_.size(), popped_[0], popped_[1], popped_[2], popped_[3], result_.counts.rough, result_.counts.too_large, probes_.lowered(), open_.size(), open_.empty() ? 0 : open_.top().bound, threshold());
  }
  long popped_[4] = {0, 0, 0, 0};

  bool out_of_time() {
    const double spent = std::chrono::duration<double>(Clock::now() - started_).count();
    if (request_.time_limit_s > 0 && spent > request_.time_limit_s) result_.ended = "the time limit";
    if (request_.stopped()) result_.ended = "the user";
    return !result_.ended.empty();
  }

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

  // ---- bounds ----

  // Of every kind of bundle: recomputation and exchanges in line only add to what is computed.
  double group_bound(const PlanGroup& group) {
    double least = std::numeric_limits<double>::infinity();
    int last = -1;
    for (const int bundle : *space_.legal_bundles(group.degrees)) {
      const int kind = space_.kinds()[bundle];
      if (kind == last) continue;
      last = kind;
      TrainingPlan plan = stripped(space_.plan_of(group.degrees, bundle).plan);
      plan.recompute = RecomputePolicy::kNone;
      plan.recompute_ops.clear();
      plan.overlap_dispatch_combine = true;
      least = std::min(least, closed_form(plan, group.degrees, -1 - kind));
    }
    return least;
  }

  double closed_form(const TrainingPlan& plan, const PlanDegrees& degrees, int switches) {
    TrainingWorkload workload = space_.scenario().training;
    workload.micro_batch = degrees.micro_batch;
    const GroupBound::Least least = layers_.of(plan, workload, switches);
    return score_.of(least.seconds, least.busy, plan.ranks());
  }

  void bound_groups() {
    std::vector<double> bounds(groups_.size(), 0);
    if (bounded_)
      work_side_by_side(groups_.size(), [&](std::size_t i) { bounds[i] = out_of_time() ? 0 : group_bound(groups_[i]); }, true);
    for (std::size_t i = 0; i < groups_.size(); ++i)
      open_.push({bounds[i], Level::kGroup, static_cast<std::int32_t>(i), 0});
  }

  // ---- best first ----

  double threshold() const {
    if (!request_.prune || static_cast<int>(found_.size()) < request_.top)
      return std::numeric_limits<double>::infinity();
    return found_[request_.top - 1].rough.score;
  }

  void look_for_best() {
    constexpr std::size_t kTogether = 16;
    while (!open_.empty() && open_.top().bound < threshold()) {
      if (out_of_time()) break;
      std::vector<Entry> now;
      while (now.size() < kTogether && !open_.empty() && open_.top().bound < threshold()) {
        now.push_back(open_.top());
        open_.pop();
      }
      std::vector<Next> next(now.size());
      work_side_by_side(now.size(), [&](std::size_t i) { next[i] = looked_at(now[i]); }, true);
      for (Next& each : next) take(each);
      for (const Entry& entry : now) if (++popped_[static_cast<int>(entry.level)] % 256 == 0) trace("looking");
      show_progress();
    }
    result_.complete = result_.ended.empty();
    if (!result_.complete && !open_.empty()) result_.open_bound = open_.top().bound;
  }

  struct Next {
    std::vector<Entry> entries;
    std::vector<RankedPlan> found;
    std::int64_t too_large = 0, ran = 0;
  };

  void take(Next& next) {
    for (const Entry& entry : next.entries) open_.push(entry);
    for (RankedPlan& plan : next.found) {
      const auto after = std::upper_bound(
          found_.begin(), found_.end(), plan,
          [](const RankedPlan& a, const RankedPlan& b) { return a.rough.score < b.rough.score; });
      found_.insert(after, std::move(plan));
    }
    result_.counts.too_large += next.too_large;
    result_.counts.rough += next.ran;
  }

  Next looked_at(const Entry& entry) {
    if (!bounded_ && entry.level != Level::kGroup) return run_plan(entry);
    switch (entry.level) {
      case Level::kGroup:
        return variants_of(entry);
      case Level::kVariant:
        return plans_of(entry);
      case Level::kPlan:
        return bounded_plan(entry);
      case Level::kRun:
        return run_plan(entry);
    }
    return {};
  }

  // The group's bundles by what they compute; or, without bounds, all of them.
  Next variants_of(const Entry& entry) {
    const PlanDegrees& degrees = groups_[entry.group].degrees;
    Next next;
    std::set<int> variants;
    for (const int bundle : *space_.legal_bundles(degrees)) {
      if (!bounded_) {
        next.entries.push_back({0, Level::kRun, entry.group, bundle});
        continue;
      }
      const int variant = space_.variants()[bundle];
      if (!variants.insert(variant).second) continue;
      const TrainingPlan plan = no_hybrid(stripped(space_.plan_of(degrees, bundle).plan));
      const double bound = std::max(entry.bound, closed_form(plan, degrees, variant));
      next.entries.push_back({bound, Level::kVariant, entry.group, bundle});
    }
    return next;
  }

  static TrainingPlan no_hybrid(TrainingPlan plan) {
    if (plan.recompute == RecomputePolicy::kHybrid) plan.recompute = RecomputePolicy::kNone;
    return plan;
  }

  struct Bounded {
    double score = 0;
    StepBound step;
    PlanFacts facts;
  };

  // By its stages and its schedule; the score is 0 where the schedule has too many passes to be looked at.
  Bounded bound_of(const TrainingPlan& plan, const TrainingWorkload& workload) {
    Bounded bounded;
    if (plan.dynamic_slicing) return bounded;
    const int microbatches = workload.num_microbatches(plan);
    const std::shared_ptr<const PassOrder> order = orders_.of(plan, microbatches);
    if (!order) return bounded;
    bounded.facts = probes_.facts(plan, workload);
    bounded.step = step_bound(bounded.facts, *order, StagePlacement(plan), microbatches);
    bounded.score = score_.of(bounded.step.seconds, bounded.step.busy, plan.ranks());
    return bounded;
  }

  // Of one variant: its bundles that can fit.
  Next plans_of(const Entry& entry) {
    const PlanDegrees& degrees = groups_[entry.group].degrees;
    const TrainingSpace::Legal first = space_.plan_of(degrees, entry.bundle);
    const Bounded bounded = bound_of(stripped(first.plan), first.workload);
    Next next;
    for (const int bundle : *space_.legal_bundles(degrees)) {
      if (space_.variants()[bundle] != space_.variants()[entry.bundle]) continue;
      const TrainingSpace::Legal legal = space_.plan_of(degrees, bundle);
      const bool judged = !bounded.facts.ranks.empty() && legal.plan.recompute != RecomputePolicy::kHybrid;
      if (judged && held_at_least(bounded.facts, bounded.step, legal.plan) > room(legal.plan)) {
        ++next.too_large;
        continue;
      }
      next.entries.push_back({std::max(entry.bound, bounded.score), Level::kPlan, entry.group, bundle});
    }
    return next;
  }

  double room(const TrainingPlan& plan) const {
    if (!space_.scenario().enforce_memory) return std::numeric_limits<double>::infinity();
    return (space_.scenario().cluster->pools.front().accelerator.memory - plan.memory_reserve).value;
  }

  // With its own shards and what it keeps on the host.
  Next bounded_plan(const Entry& entry) {
    const TrainingSpace::Legal legal = space_.plan_of(groups_[entry.group].degrees, entry.bundle);
    Next next;
    const Bounded bounded = bound_of(legal.plan, legal.workload);
    const bool judged = !bounded.facts.ranks.empty() && legal.plan.recompute != RecomputePolicy::kHybrid;
    if (judged && held(bounded.facts, bounded.step) > room(legal.plan)) {
      ++next.too_large;
      return next;
    }
    next.entries.push_back({std::max(entry.bound, bounded.score), Level::kRun, entry.group, entry.bundle});
    return next;
  }

  Next run_plan(const Entry& entry) {
    const PlanDegrees& degrees = groups_[entry.group].degrees;
    Next next;
    const std::optional<PlanFigures> figures = carried_out(space_.document(degrees, entry.bundle), request_.rough);
    if (!figures) {
      ++next.too_large;
      return next;
    }
    const TrainingSpace::Legal legal = space_.plan_of(degrees, entry.bundle);
    RankedPlan plan{.name = degrees_text(degrees, legal.plan.dp) + " · " + bundle_text(legal.plan),
                    .settings = space_.settings(degrees, entry.bundle),
                    .bound = entry.bound,
                    .rough = *figures,
                    .fine = {}};
    next.found.push_back(std::move(plan));
    next.ran = 1;
    return next;
  }

  void show_progress() {
    const double limit = threshold();
    if (std::isinf(limit) || open_.empty()) return;
    // How far the bound of what is left has come from the first one to the best.
    if (first_bound_ < 0) first_bound_ = open_.top().bound;
    request_.progress(std::clamp((open_.top().bound - first_bound_) / std::max(1e-12, limit - first_bound_), 0.0, 1.0));
  }

  // ---- at the finer clock ----

  // In the rough order, until no other can come among the best: the finer clock only adds contention.
  void refine() {
    constexpr std::size_t kTogether = 8;
    const std::size_t most = std::min<std::size_t>(found_.size(), std::max(0, request_.refine));
    std::vector<double> fine;
    for (std::size_t i = 0; i < most; i += kTogether) {
      std::sort(fine.begin(), fine.end());
      const auto top = static_cast<std::size_t>(request_.top);
      if (fine.size() >= top && found_[i].rough.score > fine[top - 1]) break;
      if (i > 0 && out_of_time()) break;
      const std::size_t count = std::min(kTogether, most - i);
      work_side_by_side(count, [&](std::size_t k) {
        Document document = base_;
        for (const Assignment& change : found_[i + k].settings)
          set_at_pointer(document, change.pointer, change.value);
        found_[i + k].fine = carried_out(document, request_.fine);
      }, true);
      for (std::size_t k = 0; k < count; ++k) {
        fine.push_back(found_[i + k].fine->score);
        ++result_.counts.fine;
      }
    }
    // Those that ran at the finer clock first, by it.
    std::stable_sort(found_.begin(), found_.end(), [](const RankedPlan& a, const RankedPlan& b) {
      return std::tuple(!a.fine, a.best_known().score) < std::tuple(!b.fine, b.best_known().score);
    });
  }

  void count() {
    SearchCounts& counts = result_.counts;
    counts.lowered = static_cast<std::int64_t>(probes_.lowered());
    const std::int64_t rest = counts.legal - counts.too_large - counts.rough;
    (result_.complete ? counts.bounded : counts.left) = rest;
    result_.plans = std::move(found_);
    if (result_.plans.empty() && result_.given) result_.plans.push_back(*result_.given);
    if (result_.plans.empty() && result_.complete)
      throw run_error(fmt::format("{}: none of {} legal plans fits", space_.scenario().name, counts.legal));
  }

  const SearchRequest& request_;
  const Document& base_;
  TrainingSpace space_;
  PlanScore score_;
  StageProbes probes_;
  GroupBound layers_;
  PassOrders orders_;
  bool bounded_;
  Clock::time_point started_ = Clock::now();
  std::vector<PlanGroup> groups_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
  std::vector<RankedPlan> found_;  // by rough score
  double first_bound_ = -1;
  SearchResult result_;
};

}  // namespace

SearchResult search_training(const Document& base, const SpaceFile& space, const SearchRequest& request) {
  return TrainingSearch(base, space, request).run();
}

}  // namespace moebius
