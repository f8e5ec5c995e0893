#include "workloads/service/carried_job.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/scenario/service_keys.h"
#include "workloads/scenario/service_pool_keys.h"
#include "workloads/service/experts.h"
#include "workloads/service/pools.h"
#include "workloads/service/rules.h"
#include "workloads/service/tariff.h"
#include "workloads/serving/request_lengths.h"

namespace moebius {
namespace {

constexpr std::size_t kMostRequests = 1 << 16;

void require(const Scenario& scenario, bool holds, const std::string& pointer, std::string_view what) {
  if (!holds)
    throw input_error(fmt::format(
        "{}: {}: {} needs iterations that are timed (/plan/steps \"surface\", --executor sim): it is "
        "not carried out op by op",
        scenario.file, pointer, what));
}

// A batch that is no service has them carried out.
void require_experts_together(const Scenario& scenario, const ServicePhase& phase) {
  if (!phase.plan.experts_apart()) return;
  if (is_batch(scenario) && !joins_by_and_by(scenario))
    throw input_error(fmt::format(
        "{}: /plan/steps: a pool of experts (/plan/separation/attention_ffn) is carried out op by "
        "op for requests that are all there at once, whole prompts first: expected \"full\", found "
        "\"surface\"",
        scenario.file));
  require(scenario, false, "/plan/separation/attention_ffn",
          "a pool of experts beside requests that come by and by");
}

// What no executor does; what the host of an engine takes is what the executor's own host takes.
void require_carried(const Scenario& scenario) {
  const ServicePlan& plan = scenario.service;
  require(scenario, plan.does != PoolRole::kDecode, "/plan/phase",
          "decoding behind caches that nobody filled");
  require(scenario, plan.speculation.drafts == 0, "/plan/decode/speculative", "guessing");
  require(scenario, !plan.tiers.on(), "/plan/cache", "a tier below device memory");
  require(scenario, !plan.encoder.given(), "/plan/encoder", "an encoder of images");
  require(scenario, plan.admission.policy == AdmissionPolicy::kNone, "/plan/admission", "admission");
  require(scenario, plan.router != RouterPolicy::kSlaAware, "/plan/router", "a router that forecasts");
  require(scenario, !plan.transfer.brings_first_token, "/plan/separation/first_token",
          "a first token that waits for its cache");
  require(scenario, plan.engine.sampling != Sampling::kHost, "/plan/scheduler/sampling",
          "choosing tokens on the host");
  require(scenario, !plan.engine.padded, "/plan/layout", "a layout of rows of one length");
  require(scenario, plan.experts.policy != BalancePolicy::kGreedy, "/plan/expert_balance/policy",
          "a placement that weighs what moving takes");
  require(scenario, !scenario.traffic.drift.changes() || scenario.traffic.users == 0, "/workload/experts",
          "popularity that changes under users who ask again when they are answered");
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const ServicePhase& phase = plan.phases[i];
    const std::string pointer = pointer_of_phase(scenario, i);
    require_experts_together(scenario, phase);
    require(scenario, phase.plan.pp == 1, pointer + "/pp", "a pipeline of stages");
    require(scenario, phase.plan.cp == 1, pointer + "/attention/cp", "a prompt that several ranks cut");
    require(scenario, phase.plan.shared_experts == SharedExperts::kSeparate, pointer + "/ep/shared_experts",
            "a shared expert among the routed ones");
    require(scenario, !phase.wan, "/plan/pools", "a link to users");
    require(scenario, !phase.plan.prefill_overlap.two_batch && !phase.plan.decode_overlap.two_batch, "/plan",
            "an iteration in two half batches");
    require(scenario,
            plan.experts.policy == BalancePolicy::kNone || !phase.plan.shares_by(ExpertSharing::kGather),
            "/plan/expert_balance/policy", "placing experts that ranks of several replicas share by columns");
    require(scenario,
            plan.experts.policy == BalancePolicy::kNone || !phase.plan.shares_by(ExpertSharing::kAllReduce),
            "/plan/expert_balance/policy", "placing experts of ranks that share a replica");
    require(scenario, phase.plan.tp == plan.phases.front().plan.tp, "/plan/prefill/attention/tp",
            "a cache cut otherwise in prefill than in decode");
  }
}

std::vector<TrafficRequest> requests_of(const Scenario& scenario) {
  std::vector<TrafficRequest> requests;
  if (!scenario.traffic.source) {
    for (int id = 0; id < scenario.served.requests; ++id) {
      const RequestLengths lengths = lengths_of(scenario.served, id);
      requests.emplace_back();
      requests.back().input_tokens = lengths.input;
      requests.back().output_tokens = lengths.output;
    }
    return requests;
  }
  const std::unique_ptr<TrafficStream> traffic =
      open_traffic_of_one_block_size(*scenario.traffic.source, scenario.service.prefix_cache);
  for (TrafficRequest request; traffic->next(request);) {
    require(scenario, request.images == 0, "/workload/trace", "a prompt with images");
    if (requests.size() == kMostRequests)
      throw run_error(
          fmt::format("{}: more than {} requests are simulated only: what executors answer is held",
                      scenario.name, kMostRequests));
    requests.push_back(request);
    requests.back().output_tokens = std::max<std::int64_t>(1, request.output_tokens);
  }
  if (requests.empty()) throw run_error(fmt::format("{}: its traffic has no requests", scenario.name));
  return requests;
}

ServingWorkload workload_of(const Scenario& scenario, const std::vector<TrafficRequest>& requests) {
  ServingWorkload work = scenario.served;
  work.requests = static_cast<int>(requests.size());
  work.input = work.output = {1, 1};
  for (const TrafficRequest& request : requests) {
    work.input.high = std::max(work.input.high, static_cast<int>(request.input_tokens));
    work.output.high = std::max(work.output.high, static_cast<int>(request.output_tokens));
  }
  return work;
}

// More pages than all requests could fill together make no difference, but take memory.
std::int64_t most_pages(const std::vector<TrafficRequest>& requests, const ReplicaRules& replica) {
  std::int64_t pages = 0;
  for (const TrafficRequest& request : requests) {
    const std::int64_t tokens = std::int64_t{request.input_tokens} + request.output_tokens;
    pages += pages_for(std::max<std::int64_t>(tokens, replica.slot_tokens), replica.page_tokens);
  }
  return pages;
}

PoolRules carried_rules(const ServicePlan& service, const ServicePool& pool,
                        const std::vector<TrafficRequest>& requests) {
  PoolRules rules = pool_rules(service, pool);
  ReplicaRules& replica = rules.instance.replica;
  // Pages that are carried out hold all layers.
  replica.pages /= replica.parts.all();
  replica.host_pages /= replica.parts.all();
  replica.parts = {};
  const std::int64_t most = most_pages(requests, replica);
  replica.pages = std::min(replica.pages, most);
  replica.host_pages = std::min(replica.host_pages, most);
  rules.instance.host = {};
  rules.instance.captured.clear();
  return rules;
}

CarriedService carried_service(const Scenario& scenario) {
  CarriedService service;
  service.model = scenario.model;
  service.ranks_per_node = scenario.cluster->pools.front().node.accelerators;
  service.router = scenario.service.router;
  service.classes = scenario.service.classes;
  service.experts = scenario.service.experts;
  service.drift = scenario.traffic.drift;
  service.requests = requests_of(scenario);
  service.workload = workload_of(scenario, service.requests);
  service.rate_scale = scenario.traffic.rate_scale;
  service.users = scenario.traffic.users;
  int devices = 0;
  for (const ServicePool& pool : service_pools(scenario)) {
    CarriedPool carried{carried_rules(scenario.service, pool, service.requests), pool.phase.plan, devices,
                        pool.pages / pool.parts.all()};
    carried.plan.fold = false;
    carried.plan.launch = LaunchMode::kHidden;
    carried.plan.captured = 0;
    if (service.experts.policy != BalancePolicy::kNone && shares_experts(pool))
      carried.experts = balancer_shape(pool);
    devices += scenario.cluster->pools[pool.phase.pool].devices();
    service.pools.push_back(std::move(carried));
  }
  return service;
}

}  // namespace

void carry_out(Job& job) {
  require_carried(job.scenario);
  job.serving = std::make_unique<Serving>(carried_service(job.scenario));
  job.scenario.serving = job.serving->service().pools.front().plan;
  job.memory = job.serving->memory(job.scenario.cluster->pools.front().accelerator.memory);
}

namespace {

double drawn_on(const Pool& pool, const Job& job, const Metrics& metrics) {
  double joules = 0;
  const Layout& layout = job.layout();
  for (std::size_t c = 0; c < metrics.joules_by_class.size(); ++c) {
    if (metrics.joules_by_class[c] <= 0) continue;  // what executes it may have other devices
    const std::int32_t device = layout.device_of_rank[layout.classes[c].representative()];
    if (&job.scenario.cluster->pool_of(device) == &pool) joules += metrics.joules_by_class[c];
  }
  return joules;
}

}  // namespace

ServingFigures figures_of_service(const Job& job) {
  const ServingFigures carried = job.serving->figures(job.scenario.goal);
  ServingFigures figures = job.serving->system().metrics().figures();
  figures.iterations = carried.iterations;
  figures.prefills = carried.prefills;
  return figures;
}

// On the cluster, the scenario's devices did it, as far as prices and power go; otherwise whoever executed
// it.
ServiceFigures carried_figures(const Job& job, const RunFacts& facts, const Metrics& metrics) {
  const ServingSystem& system = job.serving->system();
  const CarriedService& service = job.serving->service();
  ServiceFigures figures;
  const std::vector<PoolFigures> runs = system.pools();
  for (std::size_t p = 0; p < runs.size(); ++p) {
    const CarriedPool& pool = service.pools[p];
    ServicePoolFigures& of = figures.pools.emplace_back();
    of.run = runs[p];
    of.instances = pool.rules.instances;
    of.replicas = pool.plan.dp;
    of.devices = pool.rules.instances * pool.plan.ranks();
    of.pages = pool.device_pages;
    of.timed_iterations = runs[p].totals.iterations;
    const auto at = static_cast<std::size_t>(job.scenario.service.phases[p].pool);
    const Pool& devices = job.scenario.cluster->pools[at];
    of.tariff.accelerator = "what executed it";
    if (facts.on_cluster) of.tariff = tariff_of(devices, facts.idle_watts.of(at));
    of.drawn_joules = drawn_on(devices, job, metrics);
    of.experts = job.serving->experts(static_cast<int>(p));
  }
  figures.shares = system.metrics().shares();
  for (std::size_t i = 0; i < service.classes.size(); ++i) {
    const ClassFigures& run = system.metrics().classes()[i];
    figures.classes.push_back({service.classes[i].name, service.classes[i].goal, run});
    figures.rejected += run.rejected;
    figures.turned_away += run.turned_away;
  }
  figures.span = system.span();
  figures.cost = cost_of(figures.pools, {}, figures.classes, figures.span);
  figures.transferred_bytes = system.transferred_bytes();
  return figures;
}

}  // namespace moebius
