#include "workloads/perform_service.h"

#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "workloads/progress_bar.h"
#include "workloads/service_drafter.h"
#include "workloads/service_encoder.h"
#include "workloads/service_experts.h"
#include "workloads/service_pools.h"
#include "workloads/service_rules.h"
#include "workloads/service_tariff.h"
#include "workloads/service_tiers.h"
#include "workloads/service_traffic.h"
#include "workloads/serving/left_out.h"
#include "workloads/serving/system/iteration_timer.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {
namespace {

// Of experts that ranks share, loads come on top: what the surface holds is dealt evenly. Where every rank
// has a part of each, it matters which of them tokens choose, not where these stand.
ServingWorkload on_surface(const ServicePool& pool, const Popularity& popularity) {
  ServingWorkload work = pool.job->scenario.served;
  if (!shares_experts(pool)) work.popularity = popularity;
  return work;
}

// One instance of a pool on an executor, and what its iterations take.
class TimedPool {
 public:
  TimedPool(const ServicePool& pool, const Popularity& popularity, const StartExecutor& start,
            StepTimings* timings)
      : pool_(pool),
        judged_(timings == nullptr),
        recorder_(pool.job->layout(),
                  {.detail = pool.phase.plan.experts_apart() ? Detail::kOps : Detail::kNone}),
        engine_(start(*pool.job, pool.job->layout(), recorder_)),
        served_{.model = pool.job->scenario.model,
                .plan = pool.job->scenario.serving,
                .workload = on_surface(pool, popularity),
                .ranks_per_node = pool.job->scenario.cluster->pools.front().node.accelerators},
        timer_(served_, pool.job->layout(), *engine_.executor, recorder_),
        surface_(
            [this](const StepPoint& point) {
              return timer_.seconds(point, {even_ ? &*even_ : nullptr, {}, false}) +
                     (drafter_ ? drafter_->seconds(point) : 0);
            },
            timings == nullptr ? nullptr
                               : &timings->of_pool[pool.job->scenario.cluster->pools.front().name]) {
    if (pool.drafter) drafter_.emplace(pool, start, timer_.balanced());
  }

  // Experts that ranks share: where they stand, and what their loads do to iterations.
  void place_experts(const Scenario& scenario, ExpertCourse& course) {
    if (!shares_experts(pool_)) return;
    if (scenario.service.experts.policy != BalancePolicy::kNone)
      even_ = even_draw(pool_, scenario.service.experts);
    if (!course.even()) experts_ = std::make_unique<PoolExperts>(pool_, scenario, course, timer_, surface_);
  }

  // The images of its prompts are encoded by its own devices.
  void encode_with(ServedEncoder& encoder) { encoding_.emplace(surface_, encoder.timer()); }
  const std::optional<EncodingCost>& encoding() const { return encoding_; }

  PoolRules rules(const ServicePlan& service) {
    PoolRules rules = pool_rules(service, pool_);
    rules.cost = encoding_ ? static_cast<StepCost*>(&*encoding_) : &surface_;
    if (experts_) rules.costs = experts_->costs();
    rules.tiers = tier_rules(pool_.job->scenario, service.tiers, pool_, surface_);
    if (pool_.phase.role != PoolRole::kDecode)
      tiers_usd_ = service.tiers.usd_per_node_hour() / accelerators_of_node();
    const PoolTariff of = tariff();
    rules.usd_per_second = (of.usd_per_hour + of.tiers_usd_per_hour) / 3600 * pool_.phase.plan.ranks();
    return rules;
  }

  ServicePoolFigures figures(const PoolFigures& run) {
    const ServingPlan& plan = pool_.phase.plan;
    const int devices = pool_.phase.instances * plan.ranks();
    for (const bool prompts : {false, true}) timer_.take_mean_sides(prompts);
    const std::int64_t timed = surface_.measured();
    const SurfaceError error = judged_ ? surface_.error() : SurfaceError{};
    ServicePoolFigures figures{run,     pool_.phase.instances, plan.dp, devices, pool_.pages, timed, error,
                               tariff()};
    if (plan.experts_apart())
      figures.separation = {timer_.take_mean_sides(false), timer_.take_mean_sides(true), plan.apart.ranks,
                            pool_.weights, pool_.expert_weights};
    if (experts_) figures.experts = experts_->figures();
    return figures;
  }
  RunFacts& facts() { return engine_.facts; }

 private:
  // Of a device; where experts stand on others, the mean of both kinds.
  PoolTariff tariff() const {
    const ServingPlan& plan = pool_.phase.plan;
    const std::vector<Pool>& pools = pool_.job->scenario.cluster->pools;
    PoolTariff of = plan.experts_apart() ? mean_tariff(pools.front(), plan.dp, pools.back(), plan.apart.ranks)
                                         : tariff_of(pools.front());
    of.tiers_usd_per_hour = tiers_usd_;
    return of;
  }

  int accelerators_of_node() const { return pool_.job->scenario.cluster->pools.front().node.accelerators; }

  const ServicePool& pool_;
  bool judged_;           // how far the surface is off
  double tiers_usd_ = 0;  // an hour, of a device
  Recorder recorder_;
  StartedExecutor engine_;
  ServingJob served_;
  IterationTimer timer_;
  std::optional<Drafter> drafter_;
  StepSurface surface_;
  std::optional<EncodingCost> encoding_;
  std::optional<SlotDraw> even_;  // where experts are placed
  std::unique_ptr<PoolExperts> experts_;
};

// Every rank of a replica sends its part; where latents are the same on each, they share the work, and where
// there are fewer heads than ranks, each sends the one that it has.
TransferRules transfer_rules(const Scenario& scenario, const std::vector<ServicePool>& pools) {
  TransferRules rules;
  rules.layers = scenario.model.layers;
  rules.layerwise = scenario.service.transfer.layerwise;
  rules.call = scenario.service.transfer.call;
  const ServicePool& from = pools.front();
  const Cluster& cluster = *from.job->scenario.cluster;
  const int ranks = from.phase.plan.tp;
  const bool latent = scenario.model.attention == AttentionKind::kMla;
  const int copies = latent ? 1 : std::max(1, ranks / scenario.model.kv_heads);
  rules.bytes_per_token = kv_elements_per_token(scenario.model) * copies * element_bytes(from.phase.plan.kv);
  if (from.drafter)
    rules.bytes_per_token +=
        kv_elements_per_token(from.drafter->scenario.model) * element_bytes(from.phase.plan.kv);
  rules.rate = send_rate(cluster, ranks);
  return rules;
}

SystemRules system_rules(const Scenario& scenario, const std::vector<ServicePool>& pools,
                         std::vector<std::unique_ptr<TimedPool>>& timed) {
  SystemRules rules;
  for (const auto& pool : timed) rules.pools.push_back(pool->rules(scenario.service));
  rules.router = scenario.service.router;
  rules.classes = scenario.service.classes;
  rules.admission = scenario.service.admission;
  if (scenario.service.separate) rules.transfer = transfer_rules(scenario, pools);
  return rules;
}

// Encoders on the devices of a pool that computes prompts, or on those of their own.
std::unique_ptr<ServedEncoder> served_encoder(const Scenario& scenario, const std::vector<ServicePool>& pools,
                                              TimedPool& prompts, const StartExecutor& start) {
  const EncoderPlan& plan = scenario.service.encoder;
  if (!plan.given()) return nullptr;
  auto encoder = std::make_unique<ServedEncoder>(
      scenario, plan.apart ? plan.pool_index : pools.front().phase.pool, start);
  if (!plan.apart) prompts.encode_with(*encoder);
  return encoder;
}

std::vector<ServiceClassFigures> class_figures(const std::vector<RequestClass>& classes,
                                               const std::vector<ClassFigures>& run) {
  std::vector<ServiceClassFigures> figures;
  for (std::size_t i = 0; i < classes.size(); ++i)
    figures.push_back({classes[i].name, classes[i].goal, run[i]});
  return figures;
}

ServiceFigures service_figures(const Scenario& scenario, const ServingSystem& system,
                               const std::vector<std::unique_ptr<TimedPool>>& timed) {
  ServiceFigures figures;
  const std::vector<PoolFigures> pools = system.pools();
  for (std::size_t i = 0; i < timed.size(); ++i) figures.pools.push_back(timed[i]->figures(pools[i]));
  figures.shares = system.metrics().shares();
  figures.classes = class_figures(scenario.service.classes, system.metrics().classes());
  for (const ServiceClassFigures& of : figures.classes) figures.rejected += of.run.rejected;
  for (const ServiceClassFigures& of : figures.classes) figures.turned_away += of.run.turned_away;
  figures.span = system.span();
  figures.forecasts = system.forecasts();
  figures.cost = cost_of(figures.pools, figures.classes, figures.span);
  figures.transferred_bytes = system.transferred_bytes();
  figures.tiers = system.tiers();
  figures.intake = system.intake();
  return figures;
}

ServiceRecord record_of(const Scenario& scenario, const std::vector<ServicePool>& pools, const Hooks& hooks) {
  std::vector<RecordedPool> recorded;
  for (const ServicePool& pool : pools)
    recorded.push_back(
        {pool.job->scenario.cluster->pools.front().name, pool.phase.instances, pool.phase.plan.ranks()});
  RecorderOptions options = scenario.timeline;
  if (!hooks.wants_spans) options.detail = Detail::kNone;
  return {std::move(recorded), options};
}

void run(ServingSystem& system, std::int64_t requests, bool quiet) {
  std::optional<ProgressBar> bar;
  if (!quiet) bar.emplace();
  constexpr int kEventsAtOnce = 4096;
  for (bool more = true; more;) {
    for (int i = 0; i < kEventsAtOnce && more; ++i) more = system.advance();
    if (bar && requests > 0)
      bar->show(static_cast<double>(system.metrics().finished()) / static_cast<double>(requests));
  }
}

}  // namespace

Outcome perform_service(Job& job, const StartExecutor& start, const Hooks& hooks) {
  const auto started = std::chrono::steady_clock::now();
  const Scenario& scenario = job.scenario;
  const std::vector<ServicePool> pools = service_pools(scenario);
  std::vector<std::unique_ptr<TimedPool>> timed;
  for (const ServicePool& pool : pools)
    timed.push_back(std::make_unique<TimedPool>(pool, scenario.served.popularity, start, hooks.timings));
  std::optional<ExpertCourse> course;
  if (scenario.model.experts.routed > 0) {
    course.emplace(scenario.served.popularity, scenario.traffic.drift, scenario.seed, scenario.model);
    for (const auto& pool : timed) pool->place_experts(scenario, *course);
  }
  const std::unique_ptr<RequestFeed> feed = request_feed(scenario);
  const auto encoder = served_encoder(scenario, pools, *timed.front(), start);
  SystemRules rules = system_rules(scenario, pools, timed);
  if (encoder && scenario.service.encoder.apart) rules.encoder = encoder->rules();
  ServiceRecord record = record_of(scenario, pools, hooks);
  rules.observer = &record;
  ServingSystem system(rules, *feed);
  run(system, scenario.served.requests, hooks.quiet);
  Outcome outcome;
  outcome.report.scenario = &scenario;
  outcome.report.facts = std::move(timed.front()->facts());
  outcome.report.metrics.makespan = system.now();
  outcome.report.serving = system.metrics().figures();
  outcome.report.service = service_figures(scenario, system, timed);
  if (encoder) outcome.report.service->encoder = encoder->figures(system, timed.front()->encoding());
  outcome.report.service->series = record.series();
  outcome.timeline = record.take();
  for (const ServicePoolFigures& pool : outcome.report.service->pools) {
    ServingFigures& figures = *outcome.report.serving;
    figures.iterations += pool.run.totals.iterations;
    figures.prefills += pool.run.totals.prefills;
    figures.cache_pages = std::max(figures.cache_pages, static_cast<std::int32_t>(pool.pages));
    figures.peak_pages = std::max(figures.peak_pages, static_cast<std::int32_t>(pool.run.peak_pages));
  }
  RunFacts& facts = outcome.report.facts;
  const std::string missing = left_out(scenario.model);
  if (!missing.empty()) facts.provenance.emplace_back("left out", missing);
  facts.provenance.emplace_back("moebius", version_text());
  facts.dropped_spans = record.dropped();
  name_run(outcome.timeline, job, facts);
  add_process_use(facts, started);
  return outcome;
}

}  // namespace moebius
