#include "workloads/service/pools.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/layer_math.h"
#include "models/model.h"
#include "workloads/job.h"
#include "workloads/service/drafter.h"
#include "workloads/service/token_bytes.h"
#include "workloads/serving/serving.h"
#include "workloads/serving/shared_experts.h"

namespace moebius {
namespace {

// One prompt as long as an iteration takes, on each replica.
ServingWorkload largest_iteration(const ServingPlan& plan, const ServingWorkload& work) {
  ServingWorkload largest = work;
  largest.requests = plan.replicas();
  const int tokens = static_cast<int>(plan.token_budget);
  largest.input = {tokens, tokens};
  largest.output = {2, 2};
  largest.popularity = {};  // engines size their buffers once, for tokens dealt evenly
  return largest;
}

Scenario alone(const Scenario& whole, const ServicePhase& phase, int stage = 0) {
  Scenario scenario = whole;
  scenario.service = {};
  scenario.serving = phase.plan;
  scenario.serving.stage = stage;
  scenario.model = served_model(whole.model, phase.plan);
  if (phase.plan.pp > 1) {
    const std::vector<int> layers = layers_of_stages(scenario.model.layers, phase.plan.pp);
    const int first = std::accumulate(layers.begin(), layers.begin() + stage, 0);
    scenario.model = stage_of(scenario.model, first, layers[stage]);
  }
  scenario.served = largest_iteration(phase.plan, whole.served);
  const Cluster& cluster = *whole.cluster;
  std::vector<Pool> pools = {cluster.pools[phase.pool]};
  if (phase.expert_pool >= 0) pools.push_back(cluster.pools[phase.expert_pool]);
  scenario.cluster =
      build_cluster(std::move(pools), cluster.fabric.spec(), Place{whole.file, "/cluster/pools"});
  scenario.cluster->collectives = cluster.collectives;
  scenario.cluster->copy_engines = cluster.copy_engines;
  scenario.cluster->launch = cluster.launch;
  scenario.cluster->variation = cluster.variation;
  return scenario;
}

std::unique_ptr<Job> job_of(Scenario scenario) {
  auto job = std::make_unique<Job>();
  job->scenario = std::move(scenario);
  const Pool& pool = job->scenario.cluster->pools.front();
  job->serving = std::make_unique<Serving>(ServingJob{.model = job->scenario.model,
                                                      .plan = job->scenario.serving,
                                                      .workload = job->scenario.served,
                                                      .ranks_per_node = pool.node.accelerators});
  job->memory = job->serving->memory(pool.accelerator.memory);
  job->is_phase = true;
  return job;
}

Bytes of_kind(const MemoryReport& memory, MemoryKind kind) {
  return memory.classes[memory.worst_class].at_peak[static_cast<int>(kind)];
}

// Both kinds of layers in pages of so many that both have whole ones of them. Between iterations a window
// needs keys of all but the token to come, wherever it begins in a page; a chunk of attention begins with a
// page.
PageParts parts_of(const Model& model, const ServingPlan& plan, bool keeps_windows_only) {
  if (!keeps_windows_only) return {};
  const int windowed = model.num_windowed_layers(), whole = model.layers - windowed;
  const int layers = std::gcd(windowed, whole);
  const auto pages = [&](std::int64_t tokens) {
    return static_cast<std::int32_t>((tokens + plan.block_tokens - 1) / plan.block_tokens);
  };
  const bool slides = model.sliding_window > 0;
  const std::int64_t seen = slides ? model.sliding_window - 1 : model.attention_chunk;
  return {.whole = whole / layers,
          .windowed = windowed / layers,
          .window = pages(seen) + slides,
          .prompt_window = pages(seen + plan.token_budget) + slides};
}

// Of the layers of a stage, as a share, so that it has room for both kinds.
double share_of_page(const Model& stage, const PageParts& parts) {
  if (parts.windowed == 0) return 1;
  const int windowed = stage.num_windowed_layers(), whole = stage.layers - windowed;
  const double of_windowed = static_cast<double>(windowed) / parts.windowed;
  const double of_whole = parts.whole > 0 ? static_cast<double>(whole) / parts.whole : 0;
  return std::max(of_windowed, of_whole) / stage.layers;
}

// They keep no cache: weights and the largest iteration have all that a process leaves of the device.
void place_experts(ServicePool& pool) {
  if (!pool.phase.plan.experts_apart()) return;
  const ClassMemory& memory = pool.job->memory->classes.back();
  const Pool& devices = pool.job->scenario.cluster->pools.back();
  pool.expert_weights = memory.at_peak[static_cast<int>(MemoryKind::kWeights)];
  const Bytes capacity = devices.accelerator.memory;
  if (memory.peak + pool.runtime > capacity)
    throw run_error(fmt::format(
        "{}: experts and an iteration need {} on a device of pool \"{}\", which has {}{}",
        pool.job->scenario.name, to_text(memory.peak), devices.name, to_text(capacity),
        pool.runtime.value > 0 ? fmt::format(", {} of it its process's", to_text(pool.runtime)) : ""));
}

// Of an encoder beside the language model, on every rank that computes prompts.
Bytes encoder_weights(const Scenario& scenario, const EncoderPlan& encoder, PoolRole role) {
  if (!encoder.given() || encoder.apart || role == PoolRole::kDecode) return {};
  return Bytes{parameters(*encoder.model, scenario.model.hidden) * element_bytes(DType::kBf16)};
}

// Delta networks keep as much of each sequence whatever its length, from its admission on. States of all that
// may run at once are set aside, but not more than kStateShare of what weights leave, as SGLang's cache of
// states has of the memory for both caches (server_args.py: mamba_full_memory_ratio 0.9 to 1).
std::int32_t place_states(const Scenario& scenario, const ServingPlan& plan, Bytes states, Bytes room) {
  constexpr double kStateShare = 0.9 / 1.9;
  if (states.value == 0) return 0;
  const double most = std::floor(room * kStateShare / states);
  if (most < 1)
    throw run_error(
        fmt::format("{}: what delta networks keep of one sequence, {}, is more than {:.0f}% of the {} "
                    "that weights leave on a device",
                    scenario.name, to_text(states), 100 * kStateShare, to_text(room)));
  return static_cast<std::int32_t>(std::min<double>(plan.max_batch, most));
}

// Of a device, for pages of the cache; below zero where the others have taken more.
// SGLang's share is of what is free when weights come, vLLM's of all that the device has.
Bytes cache_room(CacheShare of, double share, Bytes capacity, Bytes runtime, Bytes weights, Bytes work) {
  switch (of) {
    case CacheShare::kHeld:
      return (capacity - runtime) * share - weights;
    case CacheShare::kUsed:
      return capacity * share - runtime - weights - work;
    case CacheShare::kFree:
      return (capacity - runtime - weights - work) * share;
  }
  return {};
}

std::string layout_text(const ServingPlan& plan) {
  const bool whole = plan.tp == 1 && plan.ranks_of_route() == 1;
  return fmt::format("tp {}, {}{}", plan.tp, expert_degrees(plan),
                     whole ? ": whole weights on each rank" : "");
}

// Where the head stands. Every rank of a replica has the logits of the whole vocabulary.
Bytes sampler_trial(const Scenario& stage, double bytes_of_logit) {
  const ServingPlan& plan = stage.serving;
  if (plan.stage + 1 < plan.pp) return {};
  const double rows = std::min<double>(plan.max_batch, static_cast<double>(plan.token_budget));
  return Bytes{rows * stage.model.vocabulary * bytes_of_logit};
}

// What a device of a stage holds.
struct StageRoom {
  Bytes weights, work, page_bytes, state_bytes;
  std::int64_t pages = 0;
  std::int32_t states = 0;
};

// For weights and cache: as the scenario says, or what the engine's own reserve leaves.
double share_of_device(const ServicePool& pool, const Job& job, const ServicePlan& service) {
  if (!service.reserve.is_told()) return service.device_share;
  const ServingPlan& plan = pool.phase.plan;
  const Bytes memory = job.scenario.cluster->pools.front().accelerator.memory;
  const double share = share_beside(service.reserve, memory, engine_size(plan));
  if (share > 0) return share;
  throw run_error(fmt::format(
      "{}: the engine keeps {:.0f}% of the {} of a device of pool \"{}\" for iterations of {} "
      "tokens and captured sequences of {} attention replicas; /plan/cache/hbm/share says otherwise",
      job.scenario.name, 100 * (1 - share), to_text(memory), job.scenario.cluster->pools.front().name,
      plan.token_budget, plan.replicas()));
}

StageRoom room_of_stage(const ServicePool& pool, const Job& job, const ServicePlan& service) {
  const MemoryReport& memory = *job.memory;
  const std::string& name = job.scenario.cluster->pools.front().name;
  StageRoom stage;
  stage.weights = of_kind(memory, MemoryKind::kWeights);
  const auto page = [&](const TokenBytes& token) {
    return Bytes{token.of_rank * job.scenario.serving.block_tokens};
  };
  stage.page_bytes = page(token_bytes(job.scenario.model, job.scenario.serving)) *
                     share_of_page(job.scenario.model, pool.parts);
  if (pool.drafter) stage.weights += of_kind(*pool.drafter->memory, MemoryKind::kWeights);
  stage.page_bytes += page(token_bytes_of_drafter(pool)) / std::max(1, pool.parts.whole);
  stage.weights += encoder_weights(job.scenario, service.encoder, pool.phase.role);
  stage.work = memory.peak() - of_kind(memory, MemoryKind::kWeights) - of_kind(memory, MemoryKind::kCache);
  stage.work = std::max(stage.work, sampler_trial(job.scenario, service.sampler_bytes));
  const double part = share_of_device(pool, job, service);
  const Bytes runtime = pool.runtime;
  const Bytes share = service.share_of == CacheShare::kUsed ? memory.capacity * part - runtime
                                                            : (memory.capacity - runtime) * part;
  const Bytes room = cache_room(service.share_of, part, memory.capacity, runtime, stage.weights, stage.work);
  if (stage.page_bytes > room)
    throw run_error(fmt::format(
        "{}: {} of weights ({}) leave no room for a page of the cache in {} of a device of "
        "pool \"{}\"",
        job.scenario.name, to_text(stage.weights), layout_text(pool.phase.plan),
        to_text(std::max(Bytes{}, share)), name));
  if (service.share_of == CacheShare::kHeld && share + stage.work > memory.capacity - runtime)
    throw run_error(
        fmt::format("{}: an iteration of {} tokens needs {} beside weights and cache, and a device "
                    "of pool \"{}\" leaves {}",
                    job.scenario.name, pool.phase.plan.token_budget, to_text(stage.work), name,
                    to_text(memory.capacity - runtime - share)));
  stage.state_bytes = state_bytes_per_sequence(job.scenario.model) / pool.phase.plan.tp;
  stage.states = place_states(job.scenario, pool.phase.plan, stage.state_bytes, room);
  // A stage may have none of the layers that keep pages.
  stage.pages = stage.page_bytes.value == 0
                    ? std::numeric_limits<std::int32_t>::max()
                    : static_cast<std::int64_t>((room - stage.state_bytes * stage.states) / stage.page_bytes);
  return stage;
}

// A sequence has as many pages on each stage, so that the one with least room has the say.
void set_pages(ServicePool& pool, const ServicePlan& service) {
  pool.runtime = service.runtime.of(pool.phase.plan.devices());
  std::vector<StageRoom> rooms{room_of_stage(pool, *pool.job, service)};
  for (const auto& job : pool.further) rooms.push_back(room_of_stage(pool, *job, service));
  const StageRoom& least = *std::min_element(rooms.begin(), rooms.end(),
                                             [](const auto& a, const auto& b) { return a.pages < b.pages; });
  pool.weights = least.weights;
  pool.work = least.work;
  pool.page_bytes = least.page_bytes;
  pool.pages = least.pages;
  for (const StageRoom& room : rooms) {
    if (room.states > 0) pool.states = pool.states > 0 ? std::min(pool.states, room.states) : room.states;
    pool.state_bytes = std::max(pool.state_bytes, room.state_bytes);
  }
}

// Models without experts have none to share.
std::unique_ptr<Job> drafter_of(const Scenario& whole, const ServicePhase& phase) {
  if (whole.service.speculation.drafts == 0) return nullptr;
  const std::shared_ptr<const Model>& given = whole.service.engine.draft_model;
  ServicePhase its = phase;
  if (given && given->experts.routed == 0) its.plan.ep = its.plan.expert_tp = 1;
  Scenario scenario = alone(whole, its);
  scenario.model = given ? *given : served_model(module_of(whole.model), its.plan);
  return job_of(std::move(scenario));
}

}  // namespace

std::vector<int> layers_of_stages(int layers, int stages) {
  std::vector<int> of(stages, layers / stages);
  for (int i = 0; i < layers % stages; ++i) ++of[stages - 2 - i];
  return of;
}

ServicePool service_pool(const Scenario& scenario, const ServicePhase& phase) {
  ServicePool pool{phase, job_of(alone(scenario, phase)), drafter_of(scenario, phase)};
  pool.model = served_model(scenario.model, phase.plan);
  pool.parts = parts_of(pool.model, phase.plan, scenario.service.keeps_windows_only);
  for (int stage = 1; stage < phase.plan.pp; ++stage)
    pool.further.push_back(job_of(alone(scenario, phase, stage)));
  set_pages(pool, scenario.service);
  place_experts(pool);
  return pool;
}

std::vector<ServicePool> service_pools(const Scenario& scenario) {
  std::vector<ServicePool> pools;
  for (const ServicePhase& phase : scenario.service.phases) pools.push_back(service_pool(scenario, phase));
  return pools;
}

}  // namespace moebius
