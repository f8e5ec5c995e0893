#include "workloads/scenario/service_pool_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/scenario/engine_keys.h"
#include "workloads/scenario/phase_keys.h"
#include "workloads/scenario/service_keys.h"

namespace moebius {
namespace {

constexpr std::array kRoles{
    Named<PoolRole>{"both", PoolRole::kBoth, "prompts and decoding"},
    Named<PoolRole>{"prefill", PoolRole::kPrefill, "prompts alone"},
    Named<PoolRole>{"decode", PoolRole::kDecode, "decoding alone"},
};

ByteRate read_rate(Section& section, std::string_view key, std::string_view help) {
  const std::string text = section.text(key, "100 Gb/s", help);
  const std::optional<double> rate = parse_quantity(text, Dimension::kByteRate);
  if (!rate || !(*rate > 0))
    section.place_of(key).fail(
        fmt::format("expected {} above 0, found \"{}\"", describe(Dimension::kByteRate), text));
  return ByteRate{*rate};
}

std::optional<WanRules> read_wan(Section& row, bool given) {
  Section section = row.object("wan", false, "the link between users and a pool that stands elsewhere");
  WanRules wan;
  wan.latency = section.time("latency", Time{}, "one way");
  wan.rate = read_rate(section, "bandwidth", "each way, for all that passes");
  wan.input_bytes =
      section.number("input_bytes", {0, 1e6}, 4, "of a prompt's token as text, at about four letters");
  wan.output_bytes = section.number("output_bytes", {0, 1e6}, 4,
                                    "of a token that comes back; a frame of JSON around each makes some 200");
  section.finish();
  return given ? std::optional(wan) : std::nullopt;
}

PoolKeys read_pool(Section& row, const Framework& framework, const Cluster* cluster) {
  PoolKeys keys;
  keys.role = row.choice<PoolRole>("role", kRoles, PoolRole::kBoth, "what it does");
  keys.phase = read_phase(row, {1, 1}, framework);
  keys.max_batch = static_cast<int>(row.integer("max_batch", {1, 1 << 16}, framework.max_batch,
                                                "sequences that decode at once on one replica"));
  keys.token_budget = row.integer("token_budget", {1, kMostTokens}, framework.token_budget,
                                  "most prompt tokens of an iteration on one replica");
  keys.absorbed_below = read_absorbed(row, framework, cluster, keys.phase.pool);
  keys.absorbed_given = row.given("absorbed_below");
  keys.batching =
      row.choice<BatchPolicy>("batching", kBatchings, framework.batching, "what shares an iteration");
  keys.chunked = row.boolean("chunked", framework.chunked, "prompts are cut at the token budget");
  keys.wan = read_wan(row, row.given("wan"));
  row.finish();
  return keys;
}

void check_roles(const Scenario& scenario, const Document& document) {
  bool prompts = false, tokens = false, both = false;
  for (const PoolKeys& keys : scenario.service.pools) {
    both = both || keys.role == PoolRole::kBoth;
    prompts = prompts || keys.role == PoolRole::kPrefill;
    tokens = tokens || keys.role == PoolRole::kDecode;
  }
  if (prompts != tokens)
    place_at(document, "/plan/pools")
        .fail(fmt::format("a pool only {}, but none only {}", prompts ? "takes in prompts" : "decodes",
                          prompts ? "decodes" : "takes in prompts"));
  if (!both && !prompts) place_at(document, "/plan/pools").fail("expected at least one pool");
}

// Two rows on one pool would use its devices twice.
void check_once(const std::vector<ServicePhase>& phases, const Scenario& scenario, const Place& place) {
  for (std::size_t i = 0; i + 1 < phases.size(); ++i)
    if (phases[i].pool == phases.back().pool)
      place.fail(fmt::format("pool \"{}\" stands twice", scenario.cluster->pools[phases.back().pool].name));
}

}  // namespace

std::vector<PoolKeys> read_pools(Section& plan, const Framework& framework, const Cluster* cluster) {
  std::vector<PoolKeys> pools;
  std::vector<Section> rows =
      plan.objects("pools", false,
                   "several pools that serve the model, each in its own way, in place of "
                   "`prefill`, `decode` and `separation`");
  for (Section& row : rows) pools.push_back(read_pool(row, framework, cluster));
  if (pools.size() > kMostPools)
    plan.place_of("pools").fail(fmt::format("expected at most {} pools, found {}", kMostPools, pools.size()));
  if (!pools.empty()) {
    for (const char* key : {"prefill", "decode", "separation", "phase"})
      if (plan.given(key)) plan.place_of(key).fail(fmt::format("\"{}\" counts only without pools", key));
  }
  return pools;
}

void set_phases_of_pools(Scenario& scenario, const Document& document) {
  ServicePlan& service = scenario.service;
  check_roles(scenario, document);
  service.phases.clear();
  for (std::size_t i = 0; i < service.pools.size(); ++i) {
    const PoolKeys& keys = service.pools[i];
    const Place place = place_at(document, fmt::format("/plan/pools/{}", i));
    ServicePhase phase = phase_of(scenario, keys.role, keys.phase, place);
    phase.plan.max_batch = keys.max_batch;
    phase.plan.token_budget = keys.token_budget;
    phase.plan.absorbed_below = keys.absorbed_below;
    if (keys.absorbed_given)
      check_absorbed(scenario.model, place_at(document, fmt::format("/plan/pools/{}/absorbed_below", i)));
    phase.batching = keys.batching;
    phase.chunked = keys.chunked;
    phase.wan = keys.wan;
    set_engine(phase, scenario);
    if (service.engine.padded && phase.batching == BatchPolicy::kMixed)
      place.fail("rows of one length hold prompts alone: expected \"prefill-first\" with layout \"padded\"");
    service.separate = service.separate || keys.role != PoolRole::kBoth;
    service.phases.push_back(phase);
    check_once(service.phases, scenario, place);
  }
}

std::string pointer_of_phase(const Scenario& scenario, std::size_t phase) {
  const ServicePlan& service = scenario.service;
  if (!service.pools.empty()) return fmt::format("/plan/pools/{}", phase);
  // A phase that is served alone takes what it does not say from the other.
  const bool of_decode =
      service.phases.empty() || service.phases[phase].role != PoolRole::kPrefill ||
      (service.does == PoolRole::kPrefill && !service.prefill.placed && service.decode.placed);
  return of_decode ? "/plan/decode" : "/plan/prefill";
}

}  // namespace moebius
