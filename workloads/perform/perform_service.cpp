#include "workloads/perform/perform_service.h"

#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "workloads/progress_bar.h"
#include "workloads/report/summary.h"
#include "workloads/service/rules.h"
#include "workloads/service/timed_pool.h"
#include "workloads/service/traffic.h"
#include "workloads/serving/left_out.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {
namespace {

// Bytes and rates are those of the pools at both ends, see pool_rules().
TransferRules transfer_rules(const Scenario& scenario) {
  TransferRules rules;
  rules.layers = scenario.model.layers;
  rules.layerwise = scenario.service.transfer.layerwise;
  rules.call = scenario.service.transfer.call;
  const FabricSpec& fabric = scenario.cluster->fabric.spec();
  rules.latency = fabric.host_latency + fabric.hop_latency;
  rules.brings_first_token = scenario.service.transfer.brings_first_token;
  rules.bytes_per_sequence = state_bytes_per_sequence(scenario.model).value;
  return rules;
}

SystemRules system_rules(const Scenario& scenario, std::vector<std::unique_ptr<TimedPool>>& timed) {
  SystemRules rules;
  for (const auto& pool : timed) rules.pools.push_back(pool->rules(scenario.service));
  rules.router = scenario.service.router;
  rules.classes = scenario.service.classes;
  rules.admission = scenario.service.admission;
  if (scenario.service.separate) rules.transfer = transfer_rules(scenario);
  return rules;
}

// On the devices of every pool that computes prompts, or on those of their own.
std::vector<std::unique_ptr<ServedEncoder>> served_encoders(
    const Scenario& scenario, const std::vector<ServicePool>& pools,
    const std::vector<std::unique_ptr<TimedPool>>& timed, const StartExecutor& start) {
  const EncoderPlan& plan = scenario.service.encoder;
  std::vector<std::unique_ptr<ServedEncoder>> encoders;
  if (!plan.given()) return encoders;
  if (plan.apart) encoders.push_back(std::make_unique<ServedEncoder>(scenario, plan.pool_index, start));
  for (std::size_t i = 0; i < pools.size() && !plan.apart; ++i) {
    if (pools[i].phase.role == PoolRole::kDecode) continue;
    encoders.push_back(std::make_unique<ServedEncoder>(scenario, pools[i].phase.pool, start));
    timed[i]->encode_with(*encoders.back());
  }
  return encoders;
}

// What was encoded beside the language model, on all pools; nothing where no pool does so.
std::optional<EncodingCost::Totals> encoded_beside(const std::vector<std::unique_ptr<TimedPool>>& timed) {
  std::optional<EncodingCost::Totals> sum;
  for (const auto& pool : timed) {
    const std::optional<EncodingCost::Totals> own = pool->encoding();
    if (!own) continue;
    if (!sum) sum.emplace();
    sum->images += own->images;
    sum->seconds += own->seconds;
  }
  return sum;
}

std::vector<ServiceClassFigures> class_figures(const std::vector<RequestClass>& classes,
                                               const std::vector<ClassFigures>& run) {
  std::vector<ServiceClassFigures> figures;
  for (std::size_t i = 0; i < classes.size(); ++i)
    figures.push_back({classes[i].name, classes[i].goal, run[i]});
  return figures;
}

ServiceFigures service_figures(const Scenario& scenario, const ServingSystem& system,
                               const std::vector<std::unique_ptr<TimedPool>>& timed,
                               const std::optional<EncoderFigures>& encoder) {
  ServiceFigures figures;
  const std::vector<PoolFigures> pools = system.pools();
  for (std::size_t i = 0; i < timed.size(); ++i) figures.pools.push_back(timed[i]->figures(pools[i]));
  figures.shares = system.metrics().shares();
  figures.classes = class_figures(scenario.service.classes, system.metrics().classes());
  for (const ServiceClassFigures& of : figures.classes) figures.rejected += of.run.rejected;
  for (const ServiceClassFigures& of : figures.classes) figures.turned_away += of.run.turned_away;
  figures.span = system.span();
  figures.forecasts = system.forecasts();
  EncoderDevices encoders;
  if (encoder) encoders = {encoder->devices, encoder->busy, encoder->tariff, encoder->drawn_joules};
  figures.cost = cost_of(figures.pools, encoders, figures.classes, figures.span);
  figures.encoder = encoder;
  figures.transferred_bytes = system.transferred_bytes();
  figures.tiers = system.tiers();
  figures.intake = system.intake();
  return figures;
}

ServiceRecord record_of(const Scenario& scenario, const std::vector<ServicePool>& pools, const Hooks& hooks) {
  std::vector<RecordedPool> recorded;
  for (const ServicePool& pool : pools)
    recorded.push_back({pool.job->scenario.cluster->pools.front().name, pool.phase.instances * lanes_of(pool),
                        pool.phase.plan.ranks()});
  RecorderOptions options = scenario.timeline;
  if (!hooks.wants_spans) options.detail = Detail::kNone;
  return {std::move(recorded), options};
}

void add_sources(const std::vector<std::unique_ptr<TimedPool>>& timed, Metrics& metrics) {
  BusySources busy;
  for (const auto& pool : timed) busy.add(pool->busy(), 1);
  for (double& seconds : busy.seconds) seconds = std::max(0.0, seconds);  // of differences: rounding
  metrics.seconds_by_origin = busy.seconds;
  if (busy.busy() > 0) metrics.mean_error = std::max(0.0, busy.error) / busy.busy();
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

void set_fullest_cache(const std::vector<ServicePoolFigures>& pools, ServingFigures& figures) {
  figures.cache_pages = figures.peak_pages = 0;
  for (const ServicePoolFigures& pool : pools) {
    const auto pages = static_cast<std::int32_t>(pool.pages),
               peak = static_cast<std::int32_t>(pool.run.peak_pages);
    const bool fuller = std::int64_t{peak} * figures.cache_pages > std::int64_t{figures.peak_pages} * pages;
    if (figures.cache_pages == 0 || fuller) figures.cache_pages = pages, figures.peak_pages = peak;
  }
}

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
  const auto encoders = served_encoders(scenario, pools, timed, start);
  SystemRules rules = system_rules(scenario, timed);
  if (scenario.service.encoder.apart) rules.encoder = encoders.front()->rules();
  ServiceRecord record = record_of(scenario, pools, hooks);
  rules.observer = &record;
  ServingSystem system(rules, *feed);
  run(system, scenario.served.requests, hooks.quiet);
  Outcome outcome;
  outcome.report.scenario = &scenario;
  outcome.report.facts = std::move(timed.front()->facts());
  outcome.report.metrics.makespan = system.span();
  outcome.report.serving = system.metrics().figures();
  add_sources(timed, outcome.report.metrics);
  std::optional<EncoderFigures> encoded;
  if (!encoders.empty()) encoded = encoders.front()->figures(system, encoded_beside(timed));
  outcome.report.service = service_figures(scenario, system, timed, encoded);
  outcome.report.service->series = record.series();
  outcome.timeline = record.take();
  for (const ServicePoolFigures& pool : outcome.report.service->pools) {
    outcome.report.serving->iterations += pool.run.totals.iterations;
    outcome.report.serving->prefills += pool.run.totals.prefills;
  }
  set_fullest_cache(outcome.report.service->pools, *outcome.report.serving);
  RunFacts& facts = outcome.report.facts;
  const std::string missing = left_out(scenario.model);
  if (!missing.empty()) facts.provenance.emplace_back("left out", missing);
  if (scenario.model.experts.routed > 0 && scenario.served.popularity.kind == PopularityKind::kBalanced)
    facts.provenance.emplace_back("experts",
                                  "tokens are dealt evenly over all of them: iterations of few tokens read "
                                  "more experts than tokens that "
                                  "choose would (/workload/experts/popularity)");
  const Backlog backlog = system.metrics().backlog();
  if (scenario.traffic.users == 0 && backlog.grows())
    facts.provenance.emplace_back(
        "load",
        fmt::format(
            "more than the service answers: {} of {} requests were in it when the last one came, {} when "
            "{} had; its times and rates are those of a trace of this length",
            backlog.last, backlog.submitted, backlog.earlier, backlog.earlier_submitted));
  facts.provenance.emplace_back("schedule", settings_hash(scenario));
  facts.provenance.emplace_back("moebius", version_text());
  facts.dropped_spans = record.dropped();
  name_run(outcome.timeline, job, facts);
  add_process_use(facts, started);
  return outcome;
}

}  // namespace moebius
