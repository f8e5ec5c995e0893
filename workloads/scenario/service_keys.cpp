#include "workloads/scenario/service_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/scenario/engine_keys.h"
#include "workloads/scenario/expert_balance_keys.h"
#include "workloads/scenario/overlap_keys.h"
#include "workloads/scenario/phase_keys.h"
#include "workloads/scenario/separation_keys.h"
#include "workloads/scenario/served_stage_keys.h"
#include "workloads/scenario/service_class_keys.h"
#include "workloads/scenario/service_pool_keys.h"
#include "workloads/scenario/shared_expert_keys.h"

namespace moebius {
namespace {

constexpr std::array kSteps{
    Named<bool>{"full", true, "every op of every iteration, one after the other"},
    Named<bool>{"surface", false, "what iterations take is timed on a grid, and interpolated between"},
};
constexpr std::array kPhases{
    Named<PoolRole>{"both", PoolRole::kBoth, "prompts are computed, then answered"},
    Named<PoolRole>{"prefill", PoolRole::kPrefill, "prompts alone: a request ends with its first token"},
    Named<PoolRole>{"decode", PoolRole::kDecode,
                    "answers alone: when a request comes, prompt and first token are there"},
};
constexpr std::array kRouters{
    Named<RouterPolicy>{"round-robin", RouterPolicy::kRoundRobin, "one instance after the other"},
    Named<RouterPolicy>{"least-requests", RouterPolicy::kLeastRequests, "to whom has the fewest requests"},
    Named<RouterPolicy>{"least-tokens", RouterPolicy::kLeastTokens,
                        "to whom has the fewest tokens, of prompts to compute and of contexts to read"},
    Named<RouterPolicy>{"kv-aware", RouterPolicy::kKvAware,
                        "the same, where tokens of the prompt that are in the cache do not count"},
    Named<RouterPolicy>{"sla-aware", RouterPolicy::kSlaAware,
                        "where it costs least of those that are forecast to keep the promise of its class"},
};
constexpr std::array kBalances{
    Named<ReplicaBalance>{"none", ReplicaBalance::kRoundRobin, "one replica after the other"},
    Named<ReplicaBalance>{"request", ReplicaBalance::kRequests, "the replica with the fewest requests"},
    Named<ReplicaBalance>{"token", ReplicaBalance::kTokens, "the replica with the fewest tokens"},
};

// What a framework does by itself it does only where the share itself is not said: that one is constant then.
void read_reserve(Section& section, const Framework& framework, ServicePlan& service) {
  const bool said = section.given("output_reserve");
  service.output_reserve =
      section.number("output_reserve", {0, 1}, framework.output_reserve,
                     "share of the tokens still to be generated for which admission leaves the cache free");
  service.reserve_decay =
      section.whole("output_reserve_decay", {0, 1 << 20}, said ? 0 : framework.reserve_decay,
                    "decoding iterations, with nobody driven out, in which output_reserve_start falls to "
                    "output_reserve; 0: that holds throughout");
  const bool falls = service.reserve_decay > 0;
  service.first_reserve = section.number(
      "output_reserve_start", {0, 1},
      falls ? std::max(framework.first_reserve, service.output_reserve) : service.output_reserve,
      "that share at the beginning and whenever nobody is left; who is driven out sets it to what the others "
      "have generated, and 20 tokens more each, over all that they may generate");
  section.allow_only("output_reserve_start", falls, "\"output_reserve_decay\"");
  if (service.first_reserve < service.output_reserve)
    section.place_of("output_reserve_start")
        .fail(fmt::format("expected at least the output_reserve of {}, found {}", service.output_reserve,
                          service.first_reserve));
  service.newcomer_reserve = section.whole(
      "newcomer_reserve", {0, 1 << 24}, framework.newcomer_reserve,
      "tokens still to be generated that count of a sequence at most, whole while its prompt is "
      "computed, by the share after that; 0: all, by the share from its admission on");
}

// Returns what the framework's launches take beside the driver's.
Time read_scheduler(Section section, const Framework& framework, ServicePlan& service) {
  service.batching =
      section.choice<BatchPolicy>("batching", kBatchings, framework.batching, "what shares an iteration");
  service.chunked = section.boolean("chunked", framework.chunked, "prompts are cut at the token budget");
  for (const char* key : {"batching", "chunked"})
    section.allow_only(key, service.pools.empty(), "one pool: each of `pools` has its own");
  read_reserve(section, framework, service);
  service.host.per_iteration =
      section.time("host_per_iteration", framework.host_per_iteration,
                   "the processor's work for each before the device can begin");
  service.host.per_sequence = section.time("host_per_sequence", framework.host_per_sequence,
                                           "and for each sequence of the fullest replica");
  service.host.overlapped = section.boolean("overlap", framework.overlap,
                                            "that work goes on beside the device's of the iteration before");
  service.host.reception = section.time(
      "host_per_request", framework.host_per_request,
      "from a request's arrival until it can be scheduled, beside all others: it is received and read");
  service.host.reception_per_token = section.time("host_per_prompt_token", framework.host_per_prompt_token,
                                                  "and for each token of its prompt: its text is read");
  const Time launch = section.time("host_per_launch", framework.host_per_launch,
                                   "the framework's work for each kernel that it launches, or captured "
                                   "graph, on top of /cluster/launch; counts where launches do");
  service.host.per_submission = framework.host_per_submission;
  read_engine_keys(section, framework, service);
  section.allow_only("host_per_launch", service.engine.launch != LaunchMode::kHidden,
                     "launch \"kernel\" or \"graph\"");
  const bool submits = service.engine.sampling != Sampling::kHost;
  service.host.per_submission =
      section.time("host_per_submission", submits ? service.host.per_submission : Time{},
                   "the processor's work for each iteration behind its launch, beside the device's layers: "
                   "the kernels that choose tokens are submitted");
  section.allow_only("host_per_submission", submits, "sampling \"device\" or \"gathered\"");
  section.finish();
  return launch;
}

bool hands_over(const ServicePlan& service) {
  return service.separate || std::any_of(service.pools.begin(), service.pools.end(),
                                         [](const PoolKeys& keys) { return keys.role != PoolRole::kBoth; });
}

bool needs_events(const ServicePlan& service) {
  return service.does != PoolRole::kBoth || service.prefill.two_batch || service.decode.two_batch ||
         !service.pools.empty() || service.class_keys.size() > 1 ||
         service.admission.policy != AdmissionPolicy::kNone;
}

// Unless it is said, other services are timed: every op of each of their iterations takes long. So is a batch
// that has what only iterations that are timed know. `check` shows what was decided.
void decide_steps(Scenario& scenario) {
  ServicePlan& service = scenario.service;
  if (service.steps_given) return;
  service.full_steps =
      is_batch(scenario) && !joins_by_and_by(scenario) && *needs_timing(scenario).pointer == 0;
  const auto row = std::find_if(kSteps.begin(), kSteps.end(),
                                [&](const Named<bool>& of) { return of.value == service.full_steps; });
  for (Setting& setting : scenario.settings)
    if (setting.pointer == "/plan/steps") setting.value = fmt::format("\"{}\"", row->name);
}

// Why all layers have to keep all tokens; nothing where they need not.
std::string why_all_tokens(const Scenario& scenario) {
  const ServicePlan& service = scenario.service;
  const Model& model = scenario.model;
  if (model.num_windowed_layers() == 0) return fmt::format("{} has no layers with a window", model.id);
  if (model.kv_share > 1) return fmt::format("layers of {} have keys together", model.id);
  if (service.full_steps) return "pages that are carried out op by op hold all layers";
  if (service.tiers.on()) return "blocks in tiers below device memory hold all layers";
  if (model.num_windowed_layers() == model.layers && service.prefix_cache)
    return fmt::format("no layer of {} sees all tokens, so that nothing of a prefix would be kept", model.id);
  return "";
}

// What a framework does by itself it does where it can: vLLM's hybrid manager is off beside connectors that
// take caches elsewhere, and by default for attention in chunks (vllm/config/vllm.py).
void settle_windows(Scenario& scenario, const Document& document) {
  ServicePlan& service = scenario.service;
  if (!service.keeps_windows_only) return;
  const std::string why = why_all_tokens(scenario);
  if (service.windows_given && !why.empty())
    place_at(document, "/plan/cache/windows").fail(why + ": expected \"all\", found \"window\"");
  if (service.windows_given) return;
  service.keeps_windows_only =
      why.empty() && scenario.model.attention_chunk == 0 && !service.separate && service.pools.empty();
  for (Setting& setting : scenario.settings)
    if (setting.pointer == "/plan/cache/windows" && !service.keeps_windows_only) setting.value = "\"all\"";
}

// Blocks of the traffic are made of whole pages.
void check_prefix_cache(const Scenario& scenario, const Document& document) {
  if (!scenario.service.prefix_cache || !scenario.traffic.source) return;
  const std::int64_t block = scenario.traffic.source->block_tokens();
  const int page = scenario.serving.block_tokens;
  if (block % page != 0)
    place_at(document, "/plan/cache/block_tokens")
        .fail(fmt::format("pages of {} tokens do not divide the traffic's blocks of {}", page, block));
}

}  // namespace

bool is_batch(const Scenario& scenario) {
  const ServicePlan& service = scenario.service;
  return !scenario.traffic.source && !service.separate && !needs_events(service);
}

bool joins_by_and_by(const Scenario& scenario) {
  return scenario.traffic.users > 0 || scenario.service.batching == BatchPolicy::kMixed;
}

namespace {

// Iterations that are carried out op by op know no host around them: what a framework takes counts only where
// the scenario itself says so, and is then refused.
Framework without_host(Framework framework) {
  framework.launch = LaunchMode::kHidden;
  framework.host_per_iteration = framework.host_per_sequence = framework.host_per_request = {};
  framework.host_per_prompt_token = framework.host_per_launch = framework.host_per_submission = {};
  return framework;
}

}  // namespace

Time read_service_keys(Section& plan, const Framework& framework, const Cluster* cluster,
                       ServicePlan& service) {
  service.steps_given = plan.given("steps");
  service.full_steps = plan.choice<bool>(
      "steps", kSteps, true,
      "how iterations are carried out; by default full where all requests are there at once on one pool, "
      "without guesses, users who ask again or an engine around iterations");
  service.does = plan.choice<PoolRole>("phase", kPhases, PoolRole::kBoth, "what of a request is served");
  read_separation(plan, service);
  service.router = plan.choice<RouterPolicy>("router", kRouters, RouterPolicy::kRoundRobin,
                                             "to which instance a request goes");
  service.admission = read_admission(plan);
  service.pools = read_pools(plan, framework, cluster);
  service.balance = plan.choice<ReplicaBalance>("dp_balance", kBalances, ReplicaBalance::kTokens,
                                                "to which attention replica of an instance");
  Section transfer = plan.object("transfer", false, "caches on their way from prefill to decode");
  service.transfer.layerwise = transfer.boolean("layerwise", true, "each layer leaves when it is computed");
  service.transfer.call =
      transfer.time("call", Time{}, "of a layer: asking the engine, before its bytes and after them");
  for (const char* key : {"layerwise", "call"})
    transfer.allow_only(key, hands_over(service), "prefill and decode on pools of their own");
  transfer.finish();
  read_expert_balance(
      plan.object("expert_balance", false, "where experts stand, and what is done to keep them loaded alike"),
      service.experts);
  const Time launch = read_scheduler(
      plan.object("scheduler", false, "what an engine computes next, and what deciding it takes"),
      service.steps_given && service.full_steps ? without_host(framework) : framework, service);
  read_layout(plan, service);
  return launch;
}

void read_speculation(Section& decode, const ModelCatalog* models, ServicePlan& service) {
  Section section = decode.object("speculative", false, "tokens that are guessed and checked together");
  service.speculation.drafts =
      static_cast<int>(section.integer("mtp", {0, 16}, 0, "guesses for a sequence in each iteration"));
  service.speculation.acceptance =
      section.number("acceptance", {0, 1}, 0, "that a guess holds, given that those before it did");
  read_guesses(section, models, service);
  section.finish();
}

namespace {

// Where it does not say how it is laid out, as the phase that is not served.
void set_only_phase(Scenario& scenario, const Place& at_prefill, const Place& at_decode) {
  ServicePlan& service = scenario.service;
  if (service.separate)
    at_decode.fail("prefill and decode are apart, but /plan/phase names one of them: expected \"both\"");
  const bool decodes = service.does == PoolRole::kDecode;
  PhaseKeys keys = decodes ? service.decode : service.prefill;
  const PhaseKeys& other = decodes ? service.prefill : service.decode;
  if (!keys.placed && other.placed)
    keys.pool = other.pool, keys.dp = other.dp, keys.tp = other.tp, keys.ep = other.ep,
    keys.expert_tp = other.expert_tp;
  if (!keys.placed && keys.pp == 0) keys.pp = other.pp;
  service.phases = {phase_of(scenario, service.does, keys, decodes ? at_decode : at_prefill)};
}

// As /plan/prefill and /plan/decode say.
void set_phases_of_roles(Scenario& scenario, const Document& document) {
  ServicePlan& service = scenario.service;
  const PhaseKeys &prefill = service.prefill, &decode = service.decode;
  const Place at_decode = place_at(document, "/plan/decode"),
              at_prefill = place_at(document, "/plan/prefill");
  if (service.does != PoolRole::kBoth) return set_only_phase(scenario, at_prefill, at_decode);
  if (!service.separate) {
    service.phases = {phase_of(scenario, PoolRole::kBoth, decode, at_decode)};
    ServingPlan& plan = service.phases.front().plan;
    plan.prefill_exchange = prefill.exchange;
    set_overlap(prefill, plan.prefill_overlap);
    check_overlap(prefill, false, plan, at_prefill);
    return;
  }
  service.phases = {phase_of(scenario, PoolRole::kPrefill, prefill, at_prefill),
                    phase_of(scenario, PoolRole::kDecode, decode, at_decode)};
  if (service.phases[0].pool == service.phases[1].pool)
    at_decode.fail("prefill and decode are apart, but on one pool: expected two");
}

void check_carried_prompts(const ServicePhase& phase, const ServicePlan& service, const Document& document) {
  if (phase.plan.cp == 1) return;
  if (service.full_steps)
    place_at(document, "/plan/steps")
        .fail(fmt::format("prompts that {} ranks cut are not carried out op by op: expected \"surface\"",
                          phase.plan.cp));
  if (service.tiers.on())
    place_at(document, "/plan/cache")
        .fail(fmt::format("tiers hold blocks of replicas whose ranks have whole prompts, but {} ranks cut "
                          "them: expected cp 1",
                          phase.plan.cp));
}

}  // namespace

void set_phases(Scenario& scenario, const Document& document) {
  ServicePlan& service = scenario.service;
  decide_steps(scenario);
  check_engine(scenario, document);
  check_carried_shared_experts(service, document);
  if (service.full_steps && is_batch(scenario) && !joins_by_and_by(scenario)) {
    settle_windows(scenario, document);
    if (service.decode.cp > 1)
      place_at(document, "/plan/decode/attention/cp")
          .fail("cuts prompts, but this pool decodes: expected prefill on a pool of its own");
    return check_separation(scenario, document);
  }
  if (!scenario.enforce_memory)
    place_at(document, "/plan/memory")
        .fail(
            "a service runs as many sequences as its cache has room for, so that weights have to fit: "
            "expected \"enforce\"");
  check_prefix_cache(scenario, document);
  settle_windows(scenario, document);
  service.pools.empty() ? set_phases_of_roles(scenario, document) : set_phases_of_pools(scenario, document);
  for (ServicePhase& phase : service.phases) {
    set_engine(phase, scenario);
    check_carried_prompts(phase, service, document);
  }
  check_separation(scenario, document);
  check_served_stages(scenario, document);
  set_classes(scenario, document);
}

}  // namespace moebius
