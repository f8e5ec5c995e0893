#include "workloads/perform_service.h"

#include <sys/resource.h>

#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "workloads/progress_bar.h"
#include "workloads/service_drafter.h"
#include "workloads/service_engine.h"
#include "workloads/service_pools.h"
#include "workloads/service_tariff.h"
#include "workloads/service_traffic.h"
#include "workloads/serving/left_out.h"
#include "workloads/serving/system/iteration_timer.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {
namespace {

// One instance of a pool on an executor, and what its iterations take.
class TimedPool {
 public:
  TimedPool(const ServicePool& pool, const StartExecutor& start)
      : pool_(pool),
        recorder_(pool.job->layout(), {.detail = Detail::kNone}),
        engine_(start(*pool.job, pool.job->layout(), recorder_)),
        served_{.model = pool.job->scenario.model,
                .plan = pool.job->scenario.serving,
                .workload = pool.job->scenario.served,
                .ranks_per_node = pool.job->scenario.cluster->pools.front().node.accelerators},
        timer_(served_, pool.job->layout(), *engine_.executor, recorder_),
        surface_([this](const StepPoint& point) {
          return timer_.seconds(point) + (drafter_ ? drafter_->seconds(point) : 0);
        }) {
    if (pool.drafter) drafter_.emplace(pool, start);
  }

  PoolRules rules(const ServicePlan& service) {
    const Scenario& scenario = pool_.job->scenario;
    const ServingPlan& plan = pool_.phase.plan;
    PoolRules rules;
    rules.name = scenario.cluster->pools.front().name;
    rules.role = pool_.phase.role;
    rules.instances = pool_.phase.instances;
    rules.cost = &surface_;
    rules.instance.replicas = plan.dp;
    rules.instance.balance = service.balance;
    rules.instance.host = service.host;
    ReplicaRules& replica = rules.instance.replica;
    replica.policy = pool_.phase.batching;
    replica.max_running = plan.max_batch;
    replica.token_budget = plan.token_budget;
    replica.chunked = pool_.phase.chunked;
    replica.page_tokens = plan.block_tokens;
    replica.pages = pool_.pages;
    replica.output_reserve = service.output_reserve;
    if (service.prefix_cache && scenario.traffic.source && pool_.phase.role != PoolRole::kDecode)
      replica.shared_tokens = static_cast<std::int32_t>(scenario.traffic.source->block_tokens());
    if (pool_.phase.role != PoolRole::kPrefill) replica.speculation = service.speculation;
    replica.seed = scenario.seed;
    set_engine_rules(service, pool_, rules.instance);
    const Accelerator& chip = scenario.cluster->pools.front().accelerator;
    rules.wan = pool_.phase.wan;
    rules.usd_per_second = chip.price.value / 3600 * plan.ranks();
    rules.transfer_rate = chip.nic_rate * plan.tp;
    return rules;
  }

  ServicePoolFigures figures(const PoolFigures& run) {
    const ServingPlan& plan = pool_.phase.plan;
    const Pool& pool = pool_.job->scenario.cluster->pools.front();
    const int devices = pool_.phase.instances * plan.ranks();
    return {run,         pool_.phase.instances, plan.dp,          devices,
            pool_.pages, surface_.measured(),   surface_.error(), tariff_of(pool)};
  }
  RunFacts& facts() { return engine_.facts; }

 private:
  const ServicePool& pool_;
  Recorder recorder_;
  StartedExecutor engine_;
  ServingJob served_;
  IterationTimer timer_;
  std::optional<Drafter> drafter_;
  StepSurface surface_;
};

// Every rank of a replica sends its part through its own NIC; where latents are the same on each, they share
// the work.
TransferRules transfer_rules(const Scenario& scenario, const std::vector<ServicePool>& pools) {
  TransferRules rules;
  rules.layers = scenario.model.layers;
  rules.layerwise = scenario.service.layerwise;
  const ServicePool& from = pools.front();
  const Cluster& cluster = *from.job->scenario.cluster;
  const int ranks = from.phase.plan.tp;
  rules.bytes_per_token = kv_elements_per_token(scenario.model) * element_bytes(from.phase.plan.kv);
  if (from.drafter)
    rules.bytes_per_token +=
        kv_elements_per_token(from.drafter->scenario.model) * element_bytes(from.phase.plan.kv);
  rules.rate = cluster.pools.front().accelerator.nic_rate * ranks;
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
  figures.intake = system.intake();
  return figures;
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
  for (const ServicePool& pool : pools) timed.push_back(std::make_unique<TimedPool>(pool, start));
  const std::unique_ptr<RequestFeed> feed = request_feed(scenario);
  ServingSystem system(system_rules(scenario, pools, timed), *feed);
  run(system, scenario.served.requests, hooks.quiet);
  Outcome outcome;
  outcome.report.scenario = &scenario;
  outcome.report.facts = std::move(timed.front()->facts());
  outcome.report.metrics.makespan = system.now();
  outcome.report.serving = system.metrics().figures();
  outcome.report.service = service_figures(scenario, system, timed);
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
  facts.provenance.emplace_back("moebius", kVersion);
  add_process_use(facts, started);
  return outcome;
}

}  // namespace moebius
