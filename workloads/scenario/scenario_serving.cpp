// Plan and workload of a serving scenario on one pool, and the relations between their keys.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "workloads/scenario/cache_keys.h"
#include "workloads/scenario/engine_keys.h"
#include "workloads/scenario/expert_balance_keys.h"
#include "workloads/scenario/expert_columns_keys.h"
#include "workloads/scenario/kernel_keys.h"
#include "workloads/scenario/phase_keys.h"
#include "workloads/scenario/popularity_keys.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/scenario/separation_keys.h"
#include "workloads/scenario/service_keys.h"
#include "workloads/scenario/service_pool_keys.h"
#include "workloads/scenario/serving_defaults.h"
#include "workloads/scenario/shared_expert_keys.h"
#include "workloads/scenario/traffic_keys.h"

namespace moebius {

namespace {

// One pool does both phases, so that what the second says of it and its ranks must be what the first says.
void require_same(Section& prefill, const PhaseKeys& found, const PhaseKeys& decode,
                  const std::vector<Pool>& pools) {
  const std::string& pool = decode.pool.empty() && pools.size() == 1 ? pools.front().name : decode.pool;
  if (!found.pool.empty() && found.pool != pool)
    prefill.place_of("pool").fail(
        fmt::format("pool \"{}\" differs from decode's \"{}\": one pool does both", found.pool, pool));
  const auto same = [&](const char* name, int its, int of_decode) {
    if (its == 0 || its == of_decode) return;
    prefill.place_of(name[0] == 'e' ? "ep" : "attention")
        .fail(fmt::format("{} {} differs from decode's {}: one pool does both", name, its, of_decode));
  };
  same("dp", found.dp, decode.dp);
  same("tp", found.tp, decode.tp);
  same("ep", found.ep, decode.ep);
  same("ep/tp", found.expert_tp, decode.expert_tp);
  same("cp", found.cp > 1 ? found.cp : 0, decode.cp);
  if (found.pp > 0 && found.pp != std::max(1, decode.pp))
    prefill.place_of("pp").fail(
        fmt::format("pp {} differs from decode's {}: one pool does both", found.pp, std::max(1, decode.pp)));
  require_same_shared(prefill, found, decode);
}

template <class... Args>
void require(const Document& document, bool holds, const std::string& pointer,
             fmt::format_string<Args...> sentence, Args&&... args) {
  if (!holds) place_at(document, pointer).fail(fmt::format(sentence, std::forward<Args>(args)...));
}

void check_degrees(ServingPlan& plan, const Scenario& scenario, const Document& document) {
  const std::vector<Pool>& pools = scenario.cluster->pools;
  require(document, pools.size() == 1, "/cluster/pools", "serving uses one pool so far, found {}",
          pools.size());
  const std::int64_t devices = pools.front().devices();
  const char* at = "/plan/decode/attention";
  if (plan.dp == 0) {
    require(document, devices % plan.tp == 0, at, "tp {} does not divide the {} devices of pool \"{}\"",
            plan.tp, devices, pools.front().name);
    plan.dp = static_cast<int>(devices / plan.tp);
  }
  require(document, std::int64_t{plan.dp} * plan.tp <= devices, at,
          "dp {} x tp {} = {} ranks do not fit on the {} devices of pool \"{}\"", plan.dp, plan.tp,
          std::int64_t{plan.dp} * plan.tp, devices, pools.front().name);
  require(document, plan.ranks() % plan.ranks_of_route() == 0, "/plan/decode/ep/degree",
          "expert-parallel degree {}{} does not divide the dp {} x tp {} = {} ranks", plan.ep,
          plan.shares_by(ExpertSharing::kGather) ? fmt::format(" x tp {}", plan.expert_tp) : "", plan.dp,
          plan.tp, plan.ranks());
}

// `phase`: where the keys of the plan stand.
void check_model(const ServingPlan& plan, const Model& model, const Document& document,
                 const std::string& phase) {
  const auto divides = [&](int degree, int number, const std::string& at, const char* what) {
    require(document, degree == 0 || number % degree == 0, at, "degree {} does not divide the {} {} of {}",
            degree, number, what, model.id);
  };
  const std::string tp = phase + "/attention/tp";
  divides(plan.tp, model.heads, tp, "attention heads");
  if (model.attention != AttentionKind::kMla && plan.tp % model.kv_heads != 0)
    divides(plan.tp, model.kv_heads, tp, "key-value heads");
  if (model.delta.given()) divides(plan.tp, model.delta.key_heads, tp, "key heads of the delta networks");
  divides(plan.tp, model.vocabulary, tp, "words of the vocabulary");
  if (model.dense_width > 0) divides(plan.tp, model.dense_width, tp, "columns of a dense MLP");
  const bool moe = model.experts.routed > 0;
  const std::string ep = phase + "/ep/degree";
  require(document, moe || !plan.shares_by(ExpertSharing::kGather), phase + "/ep/tp",
          "{} ranks share each expert of {}, which has none", plan.expert_tp, model.id);
  require(document, moe || plan.ep == 1 || plan.experts_apart(), ep,
          "expert-parallel degree {} for {}, which has no experts", plan.ep, model.id);
  require(document, !plan.experts_apart() || !model.is_parallel(), phase,
          "attention and MLP of {} read the same rows: its MLPs do not stand apart from attention", model.id);
  if (moe) check_slots(plan, model, place_at(document, ep));
  const bool whole =
      plan.shares_by(ExpertSharing::kGather) || plan.tp % plan.ep == 0 || plan.ep % plan.tp == 0;
  require(document, !moe || whole, ep,
          "expert-parallel degree {} is neither a part nor a multiple of tp {}: the ranks of a replica share "
          "experts among themselves or whole with those of others",
          plan.ep, plan.tp);
  if (moe)
    divides(plan.ranks_of_expert(), model.experts.width,
            plan.shares_by(ExpertSharing::kGather) ? phase + "/ep/tp" : tp, "columns of an expert");
  require(document, model.attention_chunk == 0 || model.attention != AttentionKind::kMla, "/model",
          "{} attends in chunks over latents, which is not served", model.id);
  require(document, model.attention_chunk % plan.block_tokens == 0, "/plan/cache/block_tokens",
          "pages of {} tokens do not divide the chunks of {} in which {} attends", plan.block_tokens,
          model.attention_chunk, model.id);
  require(document, model.kv_share == 1, "/model",
          "{} consecutive layers of {} share keys and values, which are not served so far", model.kv_share,
          model.id);
}

void check_formats(const Scenario& scenario, const Document& document) {
  const std::string problem = problem_of(scenario.served.popularity, scenario.model);
  if (!problem.empty()) place_at(document, "/workload/experts/popularity").fail(problem);
  check_formats_of_pools(scenario, document);
}

void check_batch(Scenario& scenario, const Document& document) {
  ServingPlan& plan = scenario.serving;
  const ServingWorkload& work = scenario.served;
  const bool equal = work.input.low == work.input.high && work.output.low == work.output.high;
  const bool alike = equal && work.requests % plan.dp == 0;
  if (!scenario.service.fold_given) plan.fold = plan.fold && alike;
  require(document, !plan.fold || alike, "/plan/fold",
          "one rank can stand for all only when all have the same requests: {} requests of {} on dp {}; "
          "expected false",
          work.requests, equal ? "one length" : "different lengths", plan.dp);
  const int longest = work.input.high + work.output.high, positions = scenario.model.learned_positions;
  // The last token is never fed back.
  require(document, positions == 0 || longest - 1 <= positions, "/workload/trace",
          "requests of up to {} tokens are longer than the {} positions that {} has learned", longest,
          positions, scenario.model.id);
  const double cached =
      std::ceil((work.input.high + work.output.high) / static_cast<double>(plan.block_tokens));
  require(document, cached * plan.max_batch * plan.block_tokens < 0x1p31, "/plan/decode/max_batch",
          "{} sequences of {} tokens are more than the 2^31 that a cache counts", plan.max_batch,
          work.input.high + work.output.high);
  const double copies = static_cast<double>(std::max<std::int64_t>(plan.token_budget, work.input.high)) *
                        plan.ranks_of_route() * std::max(1, scenario.model.experts.active);
  require(document, copies < 0x1p31, "/plan/prefill/token_budget",
          "{} tokens on each of {} ranks, to {} experts each, are more than the 2^31 copies of one dispatch",
          plan.token_budget, plan.ranks_of_route(), scenario.model.experts.active);
}

const Value* member(const Value* object, std::string_view key) {
  return object != nullptr && object->kind == Value::Kind::kObject ? object->find(key) : nullptr;
}

// Pools of devices that a phase, or a row of `pools`, names: attention's own or the phase's, and its
// experts'.
void add_pools(const Value* phase, std::vector<std::string>& names) {
  const auto text = [](const Value* name) {
    return name != nullptr && name->kind == Value::Kind::kString ? name->text : "";
  };
  const std::string attention = text(member(member(phase, "attention"), "pool"));
  for (const std::string& name : {attention.empty() ? text(member(phase, "pool")) : attention,
                                  text(member(member(phase, "experts"), "pool"))})
    if (!name.empty()) names.push_back(name);
}

// Those that prefill or decode; empty: one that needs no name.
std::vector<std::string> serving_pools(Section& plan) {
  std::vector<std::string> names;
  add_pools(plan.ahead("decode"), names);
  add_pools(plan.ahead("prefill"), names);
  const Value* rows = plan.ahead("pools");
  if (rows == nullptr || rows->kind != Value::Kind::kArray) return names;
  for (const Value& row : rows->items) add_pools(&row, names);
  return names;
}

// That with least memory, of the pools that serve.
const Accelerator& smallest_device(const Cluster& cluster, const std::vector<std::string>& serving) {
  const Pool* smallest = nullptr;
  for (const Pool& pool : cluster.pools) {
    if (!serving.empty() && std::ranges::find(serving, pool.name) == serving.end()) continue;
    if (smallest == nullptr || pool.accelerator.memory.value < smallest->accelerator.memory.value)
      smallest = &pool;
  }
  return smallest == nullptr ? cluster.pools.front().accelerator : smallest->accelerator;  // named wrongly
}

// Its own all-reduce, where the cluster, which is read before, does not say whose.
void reduce_as(const Framework& framework, Scenario& scenario) {
  const auto said =
      std::find_if(scenario.settings.begin(), scenario.settings.end(),
                   [](const Setting& setting) { return setting.pointer == "/cluster/collectives"; });
  if (!scenario.cluster || said == scenario.settings.end() || said->given) return;
  scenario.cluster->collectives = framework.collectives;
  said->value = to_string(framework.collectives);
}

}  // namespace

// What an engine reckons itself, of the devices of each pool and as they are laid out there.
void show_share(Scenario& scenario) {
  const auto said =
      std::find_if(scenario.settings.begin(), scenario.settings.end(),
                   [](const Setting& setting) { return setting.pointer == "/plan/cache/hbm/share"; });
  if (!scenario.service.reserve.is_told() || !scenario.cluster || said == scenario.settings.end()) return;
  const auto share = [&](const ServingPlan& plan, int pool) {
    return share_beside(scenario.service.reserve, scenario.cluster->pools[pool].accelerator.memory,
                        engine_size(plan));
  };
  std::vector<double> shares;
  for (const ServicePhase& phase : scenario.service.phases) shares.push_back(share(phase.plan, phase.pool));
  if (shares.empty()) shares.push_back(share(scenario.serving, 0));
  const bool alike = std::count(shares.begin(), shares.end(), shares.front()) == std::ssize(shares);
  said->value = alike ? fmt::format("{}", shares.front()) : "\"by pool\"";
}

// With the buffers of communicators, where a pool's engines have more than one device.
void show_runtime(Scenario& scenario) {
  const auto said =
      std::find_if(scenario.settings.begin(), scenario.settings.end(),
                   [](const Setting& setting) { return setting.pointer == "/plan/cache/hbm/runtime"; });
  const std::vector<ServicePhase>& phases = scenario.service.phases;
  if (said == scenario.settings.end() || said->given || phases.empty()) return;
  const auto text = [&](const ServicePhase& phase) {
    return fmt::format("\"{}\"", to_text(scenario.service.runtime.of(phase.plan.devices())));
  };
  const std::string first = text(phases.front());
  const bool alike =
      std::all_of(phases.begin(), phases.end(), [&](const ServicePhase& of) { return text(of) == first; });
  said->value = alike ? first : "\"by pool\"";
}

void read_serving_plan(Section section, Scenario& scenario, const Catalog* catalog,
                       const ModelCatalog* models) {
  ServingPlan& plan = scenario.serving;
  Framework framework = read_framework(section);
  Section decode = section.object("decode", false, "iterations that give every running sequence a token");
  Section prefill = section.object(
      "prefill", false, "iterations that take in prompts; on the same ranks, or a pool of its own");
  if (scenario.cluster)
    framework = on_device(framework, smallest_device(*scenario.cluster, serving_pools(section)));
  scenario.stacks = framework.stacks;
  reduce_as(framework, scenario);
  PhaseKeys degrees = read_phase(decode, {1, 1}, framework);
  plan.dp = degrees.dp;
  plan.tp = std::max(1, degrees.tp);
  plan.ep = std::max(1, degrees.ep);
  plan.decode_exchange = degrees.exchange;
  plan.max_batch = decode.whole("max_batch", {1, 1 << 16}, framework.max_batch,
                                "sequences that decode at once on one replica");
  read_speculation(decode, models, scenario.service);
  decode.finish();
  PhaseKeys of_prefill = read_phase(prefill, {}, framework);
  plan.prefill_exchange = of_prefill.exchange;
  plan.token_budget =
      prefill.integer("token_budget", {1, kMostTokens}, framework.token_budget,
                      "most prompt tokens of an iteration on one replica; a longer prompt has one alone");
  const Cluster* cluster = scenario.cluster ? &*scenario.cluster : nullptr;
  plan.absorbed_below =
      read_absorbed(prefill, framework, cluster, of_prefill.pool.empty() ? degrees.pool : of_prefill.pool);
  scenario.service.absorbed_given = prefill.given("absorbed_below");
  prefill.finish();
  const Time launch = read_service_keys(section, framework, cluster, scenario.service);
  if (scenario.cluster) scenario.cluster->launch += launch;
  if (!scenario.service.separate && scenario.service.does == PoolRole::kBoth && scenario.cluster)
    require_same(prefill, of_prefill, degrees, scenario.cluster->pools);
  Section cache = section.object("cache", false, "keys and values of the running sequences");
  read_cache_keys(cache, framework, scenario.service);
  read_tier_keys(cache, scenario.service, catalog);
  plan.block_tokens = cache.whole("block_tokens", {1, 1 << 16}, framework.block_tokens, "tokens of a page");
  cache.finish();
  read_kernels(section, framework, scenario);
  scenario.service.fold_given = section.given("fold");
  plan.fold =
      section.boolean("fold", true, "simulate one rank for all; by default where all have the same requests");
  scenario.enforce_memory =
      section.choice<bool>("memory", kMemoryRules, true, "when weights and cache do not fit");
  section.finish();
  scenario.service.prefill = of_prefill;
  scenario.service.decode = degrees;
}

void read_serving_workload(Section section, Scenario& scenario) {
  ServingWorkload& work = scenario.served;
  const ServedTraffic traffic =
      read_served_traffic(section.object("trace", true, "the requests"), scenario.seed);
  work.requests = traffic.requests;
  work.input = traffic.input;
  work.output = traffic.output;
  scenario.traffic.source = traffic.source;
  scenario.traffic.rate_scale =
      section.number("rate_scale", {1e-6, 1e6}, 1, "so many times faster than the trace says");
  scenario.traffic.users =
      section.integer("users", {0, 1 << 24}, 0,
                      "requests at a time, each followed by another when answered; 0: as the trace says");
  section.allow_only("rate_scale", scenario.traffic.users == 0, "times of a trace, not with users");
  section.allow_only("rate_scale", scenario.traffic.source.has_value(), "requests that come by and by");
  read_expert_traffic(section.object("experts", false, "which experts tokens choose"), work.popularity,
                      scenario.traffic.drift);
  work.seed = scenario.seed;
  section.finish();
}

void check_serving(Scenario& scenario, const Document& document) {
  if (scenario.service.absorbed_given)
    check_absorbed(scenario.model, place_at(document, "/plan/prefill/absorbed_below"));
  set_phases(scenario, document);
  show_share(scenario);
  show_runtime(scenario);
  show_captured(scenario);
  set_expert_slots(scenario, document);
  check_tiers(scenario, document);
  check_formats(scenario, document);
  if (scenario.service.phases.empty()) {
    const PhaseKeys& decode = scenario.service.decode;
    const Place place = place_at(document, "/plan/decode");
    set_expert_columns(decode, scenario.serving, place);
    check_expert_columns(decode, scenario.serving, place);
    check_expert_columns(scenario.service.prefill, scenario.serving, place_at(document, "/plan/prefill"));
    if (decode.expert_pool.empty()) {
      check_degrees(scenario.serving, scenario, document);
    } else {
      place_separate_experts(scenario, document);
    }
    check_model(scenario.serving, scenario.model, document, "/plan/decode");
    check_batch(scenario, document);
  }
  set_expert_calls(scenario);
  for (std::size_t i = 0; i < scenario.service.phases.size(); ++i) {
    const ServicePhase& phase = scenario.service.phases[i];
    const std::string pointer = pointer_of_phase(scenario, i);
    check_model(phase.plan, scenario.model, document, pointer);
    if (const auto& drafts = scenario.service.engine.draft_model) {
      ServingPlan plan = phase.plan;
      if (drafts->experts.routed == 0) plan.ep = plan.expert_tp = 1;
      check_model(plan, *drafts, document, pointer);
    }
  }
}

}  // namespace moebius
