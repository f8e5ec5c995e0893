#include "workloads/study/search/serving_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/study/search/document_changes.h"
#include "workloads/study/search/known_pools.h"
#include "workloads/study/search/search_course.h"
#include "workloads/study/search/serving_bounds.h"
#include "workloads/study/search/serving_runs.h"
#include "workloads/study/search/serving_space.h"

namespace moebius {
namespace {

constexpr std::int64_t kAllRequests = std::numeric_limits<std::int32_t>::max();

bool may_shrink(SearchGoal goal) {
  return goal == SearchGoal::kTokensPerDollar || goal == SearchGoal::kTokensPerJoule;
}

class ServingSearch {
 public:
  ServingSearch(const Document& base, const SpaceFile& given, const SearchRequest& request)
      : request_(request),
        space_(base, *request.library, given, may_shrink(request.goal)),
        score_(request.goal, space_.scenario()),
        bounds_(score_, request.attainment, request.data),
        pools_(space_, request, surfaces_),
        traffic_(demand_of(space_.scenario(), request.requests)),
        rough_(request, score_, request.rough, request.requests, [this] { return course_.late_to_look(); }),
        fine_(request, score_, request.fine, kAllRequests, [this] { return course_.late(); }) {
    result_.subject = &serving_subject();
    result_.goal = request.goal;
    result_.scenario = space_.scenario().name;
    result_.file = space_.scenario().file;
    result_.seed = space_.scenario().seed;
  }

  SearchResult run() {
    require_open();
    run_given();
    const std::vector<ServingGroup>& groups = space_.groups();
    for (const ServingGroup& group : groups) result_.counts.legal += group.bundles;
    result_.counts.groups = static_cast<std::int64_t>(groups.size());
    course_.open_groups(groups.size(), [&](std::size_t i) {
      const SearchEntry entry{.level = kGroup, .group = static_cast<std::int32_t>(i)};
      return request_.prune ? bounded(entry, ServingSpace::kAllBundles).value_or(entry) : entry;
    });
    look_at_given_degrees();
    course_.look_for_best([&](const SearchEntry& entry) {
      const bool done = entry.level == kGroup && entry.group == given_group_;
      return done ? SearchNext{} : looked_at(entry);
    });
    // The finer clock sees all requests: any of these plans may turn out better or worse.
    course_.refine([&](const RankedPlan& plan) { return refined(plan); }, false);
    result_.counts.lowered = surfaces_.measured();
    take_notes();
    course_.count();
    set_rates();
    return std::move(result_);
  }

 private:
  // What a bound is known of, from coarse to fine.
  enum Level : std::uint8_t { kGroup, kTimed, kRun };

  void require_open() const {
    if (request_.attainment <= 0 || traffic_.open) return;
    throw input_error(fmt::format(
        "{}: /workload: --attainment looks for the highest rate of requests: expected requests that come at "
        "times of their own, found {}",
        space_.scenario().file,
        space_.scenario().traffic.users > 0 ? "users who wait for answers" : "all of them at once"));
  }

  // Whoever carries a plan out sees the rate that its figures are of.
  void set_rates() {
    if (request_.attainment <= 0) return;
    for (RankedPlan& plan : result_.plans) {
      const PlanFigures& known = plan.best_known();
      if (known.value <= 0) continue;
      const double rate_scale = space_.scenario().traffic.rate_scale * known.times_faster;
      plan.settings.push_back({"/workload/rate_scale", fmt::format("{}", rate_scale)});
    }
  }

  // Its degrees may be none of the space's: what its iterations take is its own.
  void run_given() {
    RankedPlan plan;
    plan.name = "as given";
    try {
      const std::optional<PlanFigures> rough = rough_.figures(space_.base());
      if (!rough) throw run_error("does not fit");
      plan.rough = *rough;
      if (request_.refine > 0 && !course_.late_to_look())
        plan.fine = fine_.figures(space_.base(), times_faster(plan.rough));
      result_.given = plan;
    } catch (const Error& error) {
      result_.given_refusal = error.what();
    }
  }

  // The highest rate of a run before, over that of the traffic.
  double times_faster(const PlanFigures& rough) const {
    return request_.attainment > 0 && rough.value > 0 ? rough.value / traffic_.rate() : 1;
  }

  std::optional<PlanFigures> refined(const RankedPlan& plan) const {
    return fine_.figures(changed(space_.base(), plan.settings), times_faster(plan.rough));
  }

  // Nothing where a pool does not fit.
  std::optional<SearchEntry> bounded(SearchEntry entry, std::int32_t bundle) {
    const ServingGroup& group = space_.groups()[entry.group];
    const std::optional<KnownPools::Pools> pools = pools_.of(group, bundle, entry.level != kGroup);
    if (!pools) return std::nullopt;
    const ServingBound bound = bounds_.of(pools_.scenario(group.variant), pools_.demand(group.variant),
                                          pools->rates, pools->cache_tokens);
    entry.bound = std::max(entry.bound, bound.score);
    entry.order = bound.work;
    return entry;
  }

  // Good plans early: what a time limit leaves is no worse than these, and bounds have something to be
  // behind.
  void look_at_given_degrees() {
    const std::vector<ServingGroup>& groups = space_.groups();
    const auto given =
        std::find_if(groups.begin(), groups.end(), [&](const auto& of) { return as_given(of); });
    if (!request_.prune || given == groups.end()) return;
    SearchQueue near;
    near.push({.group = static_cast<std::int32_t>(given - groups.begin())});
    course_.look(
        near, [&](const SearchEntry& entry) { return looked_at(entry); },
        [&] { return static_cast<int>(course_.found().size()) >= request_.top; }, 16);
    for (; !near.empty(); near.pop()) course_.open().push(near.top());
    given_group_ = static_cast<std::int32_t>(given - groups.begin());
  }

  bool as_given(const ServingGroup& group) const {
    if (!space_.variants()[group.variant].layout.settings.empty()) return false;
    const std::vector<ServicePhase>& phases = space_.scenario().service.phases;
    for (std::size_t s = 0; s < phases.size(); ++s) {
      const ServingPlan &own = phases[s].plan, &plan = space_.phase(group, s).plan;
      if (plan.tp != own.tp || plan.ep != own.ep || plan.apart.microbatches != own.apart.microbatches ||
          !(plan.decode_overlap == own.decode_overlap))
        return false;
    }
    return true;
  }

  SearchNext looked_at(const SearchEntry& entry) {
    if (entry.level == kGroup && request_.prune) return timed(entry);
    return entry.level == kGroup || entry.level == kTimed ? plans_of(entry) : run_plan(entry);
  }

  SearchNext timed(SearchEntry entry) {
    entry.level = kTimed;
    const std::optional<SearchEntry> of_group = bounded(entry, ServingSpace::kAllBundles);
    if (of_group) return {{*of_group}, {}};
    return {{}, {}, space_.groups()[entry.group].bundles};
  }

  // Each with limits of its own.
  SearchNext plans_of(SearchEntry entry) {
    entry.level = kRun;
    SearchNext next;
    for (std::int32_t bundle = 0; bundle < space_.groups()[entry.group].bundles; ++bundle) {
      const std::optional<SearchEntry> plan = request_.prune ? bounded(entry, bundle) : entry;
      if (!plan) {
        ++next.too_large;
        continue;
      }
      next.entries.push_back(*plan);
      next.entries.back().bundle = bundle;
    }
    return next;
  }

  SearchNext run_plan(const SearchEntry& entry) const {
    SearchNext next;
    RankedPlan plan{.name = space_.name(entry.group, entry.bundle),
                    .settings = space_.settings(entry.group, entry.bundle),
                    .bound = entry.bound,
                    .group = entry.group,
                    .bundle = entry.bundle,
                    .rough = {},
                    .fine = {}};
    const std::optional<PlanFigures> figures = rough_.figures(changed(space_.base(), plan.settings));
    if (!figures) {
      ++next.too_large;
      return next;
    }
    plan.rough = *figures;
    next.found.push_back(std::move(plan));
    next.ran = 1;
    return next;
  }

  // What the figures are of, and whether they tell plans apart.
  void take_notes() {
    const auto requests = static_cast<std::int64_t>(traffic_.requests.size());
    result_.notes.push_back(fmt::format("alpha-beta: the first {} requests; fluid: all of them", requests));
    const std::vector<RankedPlan>& found = course_.found();
    if (found.empty()) return;
    if (!std::isfinite(found.front().rough.score)) {
      result_.notes.emplace_back("no plan that was looked at gives any request what it is promised");
      return;
    }
    const auto best =
        static_cast<std::size_t>(std::count_if(found.begin(), found.end(), [&](const RankedPlan& plan) {
          return plan.rough.score == found.front().rough.score;
        }));
    if (request_.goal != SearchGoal::kGoodput || request_.attainment > 0 || !traffic_.open || best < 2)
      return;
    result_.notes.push_back(fmt::format(
        "{} plans are equal by that, in the order of their requests' mean time: --attainment {} tells them "
        "apart by the highest rate that each can take",
        best, 0.99));
  }

  const SearchRequest& request_;
  ServingSpace space_;
  ServingScore score_;
  ServingBounds bounds_;
  SurfaceStore surfaces_;  // that bounds ask for
  KnownPools pools_;
  ServingDemand traffic_;  // of the scenario as it is given
  ServingRuns rough_, fine_;
  SearchResult result_;
  SearchCourse course_{request_, result_};
  std::int32_t given_group_ = -1;  // has been looked at
};

}  // namespace

SearchResult search_serving(const Document& base, const SpaceFile& space, const SearchRequest& request) {
  return ServingSearch(base, space, request).run();
}

}  // namespace moebius
