#include "workloads/service/timed_pool.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "workloads/service/rules.h"
#include "workloads/service/tariff.h"
#include "workloads/service/tiers.h"

namespace moebius {
namespace {

// Of experts that ranks share, loads come on top: what the surface holds is dealt evenly. Where every rank
// has a part of each, it matters which of them tokens choose, not where these stand. Stages of a pipeline,
// whose experts stay where they are, have their popularity in what is timed.
ServingWorkload on_surface(const ServicePool& pool, const Popularity& popularity) {
  ServingWorkload work = pool.job->scenario.served;
  if (!shares_experts(pool) || pool.phase.plan.pp > 1) work.popularity = popularity;
  return work;
}

}  // namespace

TimedPool::TimedPool(const ServicePool& pool, const Popularity& popularity, const StartExecutor& start,
                     StepTimings* timings)
    : pool_(pool),
      judged_(timings == nullptr),
      recorder_(pool.job->layout(),
                {.detail = pool.phase.plan.experts_apart() ? Detail::kOps : Detail::kNone}),
      engine_(start(*pool.job, pool.job->layout(), recorder_)),
      idle_watts_(engine_.facts.idle_watts),
      served_{.model = pool.job->scenario.model,
              .plan = pool.job->scenario.serving,
              .workload = on_surface(pool, popularity),
              .ranks_per_node = pool.job->scenario.cluster->pools.front().node.accelerators},
      timer_(served_, pool.job->layout(), {*engine_.executor, engine_.clocks}, recorder_),
      surface_(
          [this](const StepPoint& point) { return time(point); },
          timings == nullptr ? nullptr : &timings->of_pool[pool.job->scenario.cluster->pools.front().name],
          key_step(served_.plan)) {
  if (pool.drafter) drafter_.emplace(pool, start, timer_.balanced());
  if (pool.phase.plan.pp > 1)
    pipeline_.emplace(pool, served_.workload, start, surface_, timer_.balanced(), timings);
}

StepTime TimedPool::time(const StepPoint& point) {
  const double seconds = timer_.seconds(point, {even_ ? &*even_ : nullptr, {}, false});
  StepTime time(seconds, timer_.busy());
  if (drafter_) time.add(drafter_->time(point), 1);
  return time;
}

BusySources TimedPool::busy() const {
  BusySources sum = surface_.busy();
  if (experts_) sum.add(experts_->busy(), 1);
  if (pipeline_) sum.add(pipeline_->busy(), 1);
  return sum;
}

void TimedPool::place_experts(const Scenario& scenario, ExpertCourse& course) {
  if (!shares_experts(pool_) || pipeline_) return;
  SlotDraw even = even_draw(pool_, scenario.service.experts, course);
  if (scenario.service.experts.policy != BalancePolicy::kNone || even.draws_always) even_ = std::move(even);
  if (course.even()) return;
  const PoolExperts::Timed timed{timer_, drafter_ ? &*drafter_ : nullptr, surface_};
  experts_ = std::make_unique<PoolExperts>(pool_, scenario, course, timed);
}

// By instance, or one for all. What moves and whose stages are taken is of an instance.
std::vector<StepCost*> TimedPool::costs() {
  std::vector<StepCost*> costs{&surface_};
  if (experts_) costs = experts_->costs();
  if (pipeline_) costs = pipeline_->costs();
  if (encoder_ == nullptr) return costs;
  encoding_.clear();
  for (StepCost*& cost : costs)
    cost = encoding_.emplace_back(std::make_unique<EncodingCost>(*cost, *encoder_)).get();
  return costs;
}

std::optional<EncodingCost::Totals> TimedPool::encoding() const {
  if (encoder_ == nullptr) return std::nullopt;
  EncodingCost::Totals sum;
  for (const auto& of : encoding_) {
    sum.images += of->totals().images;
    sum.seconds += of->totals().seconds;
  }
  return sum;
}

PoolRules TimedPool::rules(const ServicePlan& service) {
  PoolRules rules = pool_rules(service, pool_);
  rules.costs = costs();
  rules.cost = rules.costs.front();
  if (rules.costs.size() == 1) rules.costs.clear();
  rules.tiers = tier_rules(pool_.job->scenario, service.tiers, pool_, surface_);
  if (pool_.phase.role != PoolRole::kDecode)
    tiers_usd_ = service.tiers.usd_per_node_hour() / accelerators_of_node();
  const PoolTariff of = tariff();
  // A lane: its part of all stages.
  rules.usd_per_second =
      (of.usd_per_hour + of.tiers_usd_per_hour) / 3600 * pool_.phase.plan.devices() / rules.lanes;
  return rules;
}

ServicePoolFigures TimedPool::figures(const PoolFigures& run) {
  const ServingPlan& plan = pool_.phase.plan;
  const int devices = pool_.phase.instances * plan.devices();
  for (const bool prompts : {false, true}) timer_.take_mean_sides(prompts);
  const std::int64_t timed = surface_.measured() + (pipeline_ ? pipeline_->measured() : 0);
  SurfaceError error = judged_ ? surface_.error() : SurfaceError{};
  if (judged_ && pipeline_) {
    const SurfaceError behind = pipeline_->error();
    if (behind.p90 > error.p90) error = behind;
  }
  ServicePoolFigures figures{
      run, pool_.phase.instances, plan.replicas(), devices, pool_.pages, timed, error, tariff(), drawn()};
  if (plan.experts_apart())
    figures.separation = {timer_.take_mean_sides(false), timer_.take_mean_sides(true), plan.apart.ranks,
                          pool_.weights, pool_.expert_weights};
  if (experts_) figures.experts = experts_->figures();
  if (pipeline_) {
    figures.pipeline = pipeline_->totals();
    // Of stages, which parts of prompts fill though their lane goes on.
    const std::vector<double>& busy = figures.pipeline->busy;
    const double all = std::accumulate(busy.begin(), busy.end(), 0.0);
    const Time lanes = run.totals.busy;
    if (lanes.ns > 0) figures.run.busy *= all / lanes.seconds() * lanes_of(pool_) / plan.pp;
    const double prompts = all > 0 ? figures.pipeline->prompts / all : 0;
    figures.run.totals.busy_with_prompts = std::min(lanes, time_from_seconds(lanes.seconds() * prompts));
  }
  return figures;
}

// Of differences: rounding may leave less than nothing.
double TimedPool::drawn() const {
  const double images = encoder_ == nullptr ? 0 : static_cast<double>(encoding()->images);
  return std::max(0.0, busy().joules) + (images > 0 ? images * encoder_->joules_per_image() : 0);
}

// Of a device; where experts stand on others, the mean of both kinds.
PoolTariff TimedPool::tariff() const {
  const ServingPlan& plan = pool_.phase.plan;
  const std::vector<Pool>& pools = pool_.job->scenario.cluster->pools;
  PoolTariff of = tariff_of(pools.front(), idle_watts_.of(0));
  const std::size_t last = pools.size() - 1;
  if (plan.experts_apart())
    of = mean_tariff(of, plan.dp, tariff_of(pools[last], idle_watts_.of(last)), plan.apart.ranks);
  // Caches stand with attention.
  of.tiers_usd_per_hour = tiers_usd_ * (plan.ranks() - plan.apart.ranks) / plan.ranks();
  return of;
}

}  // namespace moebius
