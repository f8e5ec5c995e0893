#include "workloads/study/search/training_search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <queue>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/crew.h"
#include "workloads/study/search/plan_bounds.h"
#include "workloads/study/search/plan_settings.h"

namespace moebius {
namespace {

// What a bound is known of, from coarse to fine.
enum class Level : std::uint8_t { kGroup, kLayers, kVariant, kStages, kPlan, kRun };

struct Entry {
  double bound = 0;
  Level level = Level::kGroup;
  std::int32_t group = 0, bundle = 0;

  bool operator>(const Entry& other) const {
    return std::tie(bound, other.level, group, bundle) >
           std::tie(other.bound, level, other.group, other.bundle);
  }
};

class TrainingSearch {
 public:
  TrainingSearch(const Document& base, const SpaceFile& given, const SearchRequest& request)
      : request_(request),
        base_(base),
        space_(base, *request.library, given, request.goal != SearchGoal::kStepTime),
        score_(request.goal, space_.scenario()),
        bounds_(space_, score_, request.data),
        bounded_(request.prune && bounds_.hold()) {
    result_.goal = request.goal;
    result_.scenario = space_.scenario().name;
    result_.file = space_.scenario().file;
    result_.seed = space_.scenario().seed;
    result_.devices = space_.scenario().cluster->pools.front().devices();
  }

  SearchResult run() {
    run_given();
    groups_ = space_.groups();
    for (const PlanGroup& group : groups_) result_.counts.legal += group.legal;
    result_.counts.groups = static_cast<std::int64_t>(groups_.size());
    bound_groups();
    look_for_best();
    refine();
    count();
    return std::move(result_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  // By several threads.
  bool late() const {
    const double spent = std::chrono::duration<double>(Clock::now() - started_).count();
    return request_.time_limit_s > 0 && spent > request_.time_limit_s;
  }

  bool out_of_time() {
    if (late()) result_.ended = "the time limit";
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

  void bound_groups() {
    std::vector<double> bounds(groups_.size(), 0);
    if (bounded_)
      work_side_by_side(
          groups_.size(),
          [&](std::size_t i) {
            if (!late()) bounds[i] = bounds_.of_group(groups_[i].degrees, true);
          },
          true);
    for (std::size_t i = 0; i < groups_.size(); ++i)
      open_.push({bounds[i], Level::kGroup, static_cast<std::int32_t>(i), 0});
  }

  // ---- best first ----

  double threshold() const {
    if (!request_.prune || static_cast<int>(found_.size()) < request_.top)
      return std::numeric_limits<double>::infinity();
    return found_[request_.top - 1].rough.score;
  }

  using Queue = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

  void look_for_best() {
    look_at_given_degrees();
    look(open_, [] { return false; });
    result_.complete = result_.ended.empty();
    if (!result_.complete && !open_.empty()) result_.open_bound = open_.top().bound;
  }

  // The sooner there are good plans, the more a bound rules out: those with the degrees of the given plan
  // come first, until there are as many as are wanted.
  void look_at_given_degrees() {
    const std::optional<std::int32_t> group = group_of_given();
    if (!bounded_ || !group) return;
    Queue near;
    near.push({0, Level::kGroup, *group, 0});
    look(near, [&] { return static_cast<int>(found_.size()) >= request_.top; });
    for (; !near.empty(); near.pop()) open_.push(near.top());
    given_group_ = *group;
  }

  std::optional<std::int32_t> group_of_given() const {
    const TrainingPlan& plan = space_.scenario().plan;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const PlanDegrees& d = groups_[i].degrees;
      if (d.tp == plan.tp && d.dense_tp == plan.dense_degree() && d.expert_tp == plan.expert_tp &&
          d.pp == plan.pp && d.schedule == plan.schedule && d.chunks == plan.chunks && d.ep == plan.ep &&
          d.cp == plan.cp && d.tensor_overlap == (plan.tp_chunks > 0) && d.dp == 0 &&
          d.micro_batch == space_.scenario().training.micro_batch)
        return static_cast<std::int32_t>(i);
    }
    return std::nullopt;
  }

  template <class Enough>
  void look(Queue& open, Enough enough) {
    constexpr std::size_t kTogether = 16;
    while (!open.empty() && open.top().bound < threshold() && !enough()) {
      if (out_of_time()) break;
      std::vector<Entry> now;
      while (now.size() < kTogether && !open.empty() && open.top().bound < threshold()) {
        const Entry entry = open.top();
        open.pop();
        if (entry.level != Level::kGroup || entry.group != given_group_) now.push_back(entry);
      }
      std::vector<Next> next(now.size());
      work_side_by_side(
          now.size(),
          [&](std::size_t i) {
            next[i] = late() ? Next{{now[i]}, {}} : looked_at(now[i]);
          },
          true);
      for (Next& each : next) take(each, open);
      show_progress();
    }
  }

  struct Next {
    std::vector<Entry> entries;
    std::vector<RankedPlan> found;
    std::int64_t too_large = 0, ran = 0;
  };

  void take(Next& next, Queue& open) {
    for (const Entry& entry : next.entries) open.push(entry);
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
        if (!bounded_) return variants_of(entry);
        return {{{std::max(entry.bound, bounds_.of_group(groups_[entry.group].degrees, false)),
                  Level::kLayers, entry.group, 0}},
                {}};
      case Level::kLayers:
        return variants_of(entry);
      case Level::kVariant:
        return roomy(entry);
      case Level::kStages:
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
      const double bound = std::max(entry.bound, bounds_.of_variant(degrees, bundle));
      next.entries.push_back({bound, Level::kVariant, entry.group, bundle});
    }
    return next;
  }

  std::vector<int> of_variant(const Entry& entry) const {
    std::vector<int> bundles;
    for (const int bundle : *space_.legal_bundles(groups_[entry.group].degrees)) {
      if (space_.variants()[bundle] == space_.variants()[entry.bundle]) bundles.push_back(bundle);
    }
    return bundles;
  }

  // A variant of which nothing fits, by what single layers hold, is not lowered.
  Next roomy(const Entry& entry) {
    const std::vector<int> bundles = of_variant(entry);
    const std::vector<int> fit = bounds_.with_room(groups_[entry.group].degrees, bundles);
    if (fit.empty()) return {{}, {}, static_cast<std::int64_t>(bundles.size())};
    return {{{entry.bound, Level::kStages, entry.group, entry.bundle}}, {}};
  }

  // Of one variant: its bundles that can fit.
  Next plans_of(const Entry& entry) {
    const PlanDegrees& degrees = groups_[entry.group].degrees;
    const std::vector<int> bundles = of_variant(entry), fit = bounds_.with_room(degrees, bundles);
    const PlanBounds::Stages variant = bounds_.of_stages(degrees, entry.bundle);
    Next next;
    next.too_large = static_cast<std::int64_t>(bundles.size() - fit.size());
    for (const int bundle : fit) {
      if (bounds_.too_large(variant, space_.plan_of(degrees, bundle).plan)) {
        ++next.too_large;
        continue;
      }
      next.entries.push_back({std::max(entry.bound, variant.score), Level::kPlan, entry.group, bundle});
    }
    return next;
  }

  // With its own shards and what it keeps on the host.
  Next bounded_plan(const Entry& entry) {
    const PlanBounds::Plan plan = bounds_.of_plan(groups_[entry.group].degrees, entry.bundle);
    Next next;
    if (plan.too_large)
      ++next.too_large;
    else
      next.entries.push_back({std::max(entry.bound, plan.score), Level::kRun, entry.group, entry.bundle});
    return next;
  }

  Next run_plan(const Entry& entry) {
    const PlanDegrees& degrees = groups_[entry.group].degrees;
    Next next;
    const std::optional<PlanFigures> figures =
        carried_out(space_.document(degrees, entry.bundle), request_.rough);
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
    request_.progress(
        std::clamp((open_.top().bound - first_bound_) / std::max(1e-12, limit - first_bound_), 0.0, 1.0));
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
      work_side_by_side(
          count,
          [&](std::size_t k) {
            if (i > 0 && late()) return;
            Document document = base_;
            for (const Assignment& change : found_[i + k].settings)
              set_at_pointer(document, change.pointer, change.value);
            found_[i + k].fine = carried_out(document, request_.fine);
          },
          true);
      for (std::size_t k = 0; k < count; ++k) {
        if (!found_[i + k].fine) continue;
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
    counts.lowered = static_cast<std::int64_t>(bounds_.lowered());
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
  PlanBounds bounds_;
  bool bounded_;
  Clock::time_point started_ = Clock::now();
  std::vector<PlanGroup> groups_;
  Queue open_;
  std::int32_t given_group_ = -1;  // has been looked at
  std::vector<RankedPlan> found_;  // by rough score
  double first_bound_ = -1;
  SearchResult result_;
};

}  // namespace

SearchResult search_training(const Document& base, const SpaceFile& space, const SearchRequest& request) {
  return TrainingSearch(base, space, request).run();
}

}  // namespace moebius
