#include "workloads/scenario/phase_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "workloads/scenario/engine_keys.h"
#include "workloads/scenario/expert_columns_keys.h"
#include "workloads/scenario/overlap_keys.h"
#include "workloads/scenario/separation_keys.h"
#include "workloads/scenario/served_stage_keys.h"
#include "workloads/scenario/shared_expert_keys.h"
#include "workloads/serving/latent_parts.h"

namespace moebius {
namespace {

constexpr std::array kCutAttention{
    Named<CutAttention>{"tokens", CutAttention::kTokens,
                        "all heads of its own tokens; keys of all are gathered"},
    Named<CutAttention>{"heads", CutAttention::kHeads,
                        "its share of the heads with all tokens; their latents are gathered (SP-TP-SP)"},
};

void check_attention(const Model& model, const PhaseKeys& keys, const Place& place) {
  if (keys.cp > 1 && model.is_sparse())
    place.fail(fmt::format("cp {} cuts prompts, whose keys {} chooses by an indexer: expected cp 1", keys.cp,
                           model.id));
  if (keys.cp > 1 && model.delta.given())
    place.fail(fmt::format("cp {} cuts prompts, whose states of {} follow from each other: expected cp 1",
                           keys.cp, model.id));
  if (keys.cp > 1 && model.attention_chunk > 0)
    place.fail(
        fmt::format("cp {} cuts prompts, of which {} attends in chunks: expected cp 1", keys.cp, model.id));
  if (keys.attend_by != CutAttention::kHeads) return;
  if (keys.cp == 1)
    place.fail("attend_by \"heads\" is of ranks that cut prompts: expected cp above 1, found 1");
  if (model.attention != AttentionKind::kMla)
    place.fail(
        fmt::format("attend_by \"heads\" gathers latents, and {} has none: expected \"tokens\"", model.id));
  if (model.heads % keys.cp != 0)
    place.fail(fmt::format("attend_by \"heads\": cp {} does not divide the {} heads of {}", keys.cp,
                           model.heads, model.id));
}

// Ranks that decode would have to gather the cache of every sequence for each token.
void check_cut_prompts(const ServicePhase& phase, const PhaseKeys& keys, const Place& place) {
  if (keys.cp == 1) return;
  if (phase.role != PoolRole::kPrefill)
    place.fail(fmt::format("cp {} cuts prompts, but this pool decodes: expected prefill on a pool of its own",
                           keys.cp));
  if (phase.plan.tp > 1)
    place.fail(fmt::format("cp {} with tp {}: prompts are cut over ranks with whole heads, expected tp 1",
                           keys.cp, phase.plan.tp));
  if (!keys.expert_pool.empty())
    place.fail(fmt::format("cp {} with experts on pool \"{}\": expected them on the ranks of attention",
                           keys.cp, keys.expert_pool));
}

}  // namespace

PhaseKeys read_phase(Section& phase, PhaseDegrees otherwise, const Framework& framework) {
  PhaseKeys degrees;
  degrees.pool = phase.text("pool", "", "whose devices; may be left out where there is one pool");
  Section attention = phase.object("attention", false, "how attention is spread over ranks");
  degrees.dp =
      attention.whole("dp", {0, kMostRanks}, 0, "replicas with requests of their own; 0: all devices");
  degrees.tp =
      attention.whole("tp", {0, kMostRanks}, otherwise.tp, "ranks that share the heads of a replica");
  degrees.cp = attention.whole("cp", {1, kMostRanks}, 1,
                               "ranks that cut the prompts of a replica among themselves; of prefill alone");
  degrees.attend_by = attention.choice<CutAttention>("attend_by", kCutAttention, CutAttention::kTokens,
                                                     "what each of the ranks that cut prompts attends with");
  degrees.pp =
      phase.whole("pp", {0, kMostStages}, 0,
                  "stages that the layers stand on, one behind the other, as many batches under way; "
                  "0: all layers on each rank");
  read_separate_experts(phase, attention, degrees);
  degrees.placed = attention.given("dp") || attention.given("tp") || !degrees.pool.empty();
  attention.finish();
  Section experts = phase.object("ep", false, "expert parallelism");
  degrees.ep =
      experts.whole("degree", {0, kMostRanks}, otherwise.ep, "ranks that share the experts of a layer");
  read_expert_columns(experts, degrees);
  degrees.placed = degrees.placed || experts.given("degree") || experts.given("tp");
  degrees.shared_experts = read_shared_experts(experts);
  read_overlap(phase, experts, degrees);
  // Frameworks need to be told how tokens travel to experts that stand apart, or beside another half batch.
  const bool told = degrees.two_batch || !degrees.expert_pool.empty();
  degrees.exchange = read_dispatch(experts, told ? Algorithm::kAuto : framework.dispatch);
  degrees.exchange_given = experts.given("dispatch");
  experts.finish();
  return degrees;
}

void check_absorbed(const Model& model, const Place& place) {
  if (attends_over_latents(model)) return;
  place.fail(
      fmt::format("\"absorbed_below\" counts only where queries attend to all latents of their sequence, "
                  "and {} {}",
                  model.id, model.is_sparse() ? "chooses some by an indexer" : "has none"));
}

std::int64_t read_absorbed(Section& phase, const Framework& framework, const Cluster* cluster,
                           const std::string& pool) {
  int otherwise = framework.absorbed_below;
  if (cluster != nullptr) {
    const auto at = std::ranges::find(cluster->pools, pool, &Pool::name);
    const bool found = at != cluster->pools.end();  // else it has no name, or a wrong one
    otherwise = absorbed_on(framework, found ? at->accelerator : cluster->pools.front().accelerator);
  }
  return phase.whole(
      "absorbed_below", {0, kAlwaysAbsorbed}, otherwise,
      "prompts of a replica's iteration that have cached tokens before them, but fewer than so "
      "many together, read latents by absorbed maps, all others blow them up to heads; 1: none "
      "is absorbed; 0: each sequence does what takes fewer products");
}

// Replicas that share no experts need not wait for each other: each is an instance by itself. Those of
// several ranks share them with others where experts stand on more ranks than one replica has.
ServicePhase phase_of(const Scenario& scenario, PoolRole role, const PhaseKeys& keys, const Place& place) {
  ServicePhase phase;
  phase.role = role;
  phase.pool = pool_named(scenario, keys.pool, place);
  phase.plan = scenario.serving;
  ServingPlan& plan = phase.plan;
  plan.tp = std::max(1, keys.tp);
  plan.ep = std::max(1, keys.ep);
  plan.prefill_exchange = plan.decode_exchange = keys.exchange;
  phase.batching = scenario.service.batching;
  phase.chunked = scenario.service.chunked;
  set_engine(phase, scenario);
  plan.cp = keys.cp;
  plan.attend_by = keys.attend_by;
  check_cut_prompts(phase, keys, place);
  check_attention(scenario.model, keys, place);
  set_expert_columns(keys, plan, place);
  set_shared_experts(scenario, keys, plan, place);
  plan.pp = std::max(1, keys.pp);
  const Pool& pool = scenario.cluster->pools[phase.pool];
  const int dp = keys.dp > 0 ? keys.dp : pool.devices() / (plan.tp * plan.cp * plan.pp);
  if (dp == 0 || std::int64_t{dp} * plan.cp * plan.tp * plan.pp > pool.devices())
    place.fail(fmt::format("{}dp {} x {}tp {} ranks do not fit on the {} devices of pool \"{}\"",
                           plan.pp > 1 ? fmt::format("pp {} x ", plan.pp) : "", std::max(1, dp),
                           plan.cp > 1 ? fmt::format("cp {} x ", plan.cp) : "", plan.tp, pool.devices(),
                           pool.name));
  if (!keys.expert_pool.empty()) {
    set_experts_apart(scenario, keys, phase, place);
    return phase;
  }
  phase.instances = set_instance(plan, dp, place);
  set_overlap(keys, plan.prefill_overlap);
  plan.decode_overlap = plan.prefill_overlap;
  check_overlap(keys, true, plan, place);
  return phase;
}

}  // namespace moebius
