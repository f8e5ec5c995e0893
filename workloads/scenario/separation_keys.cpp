#include "workloads/scenario/separation_keys.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr double kMostMicrobatches = 64;

constexpr std::array kFirstTokens{
    Named<bool>{"prefill", false, "by who computed the prompt"},
    Named<bool>{"decode", true,
                "by who decodes, once its cache is there and the iteration under way is over"},
};

std::vector<Named<int>> encoders() {
  std::vector<Named<int>> rows{{"none", -1, "images take no time"}};
  for (const VisionEncoder& encoder : vision_encoders())
    rows.push_back({encoder.id, static_cast<int>(rows.size()) - 1, encoder.source});
  return rows;
}

void read_encoder(Section section, EncoderPlan& encoder) {
  const std::vector<Named<int>> rows = encoders();
  const int row =
      section.choice<int>("model", std::span<const Named<int>>(rows), -1, "what turns images into tokens");
  if (row >= 0) encoder.model = &vision_encoders()[row];
  encoder.pool = section.text("pool", "", "whose devices, where encoders stand apart");
  encoder.tp = static_cast<int>(section.integer("tp", {1, kMostRanks}, 1, "ranks that share its heads"));
  encoder.dp = static_cast<int>(
      section.integer("dp", {0, kMostRanks}, 0, "replicas, where they stand apart; 0: all devices"));
  encoder.max_batch =
      static_cast<int>(section.integer("max_batch", {1, 1 << 16}, 8, "images of one iteration of a replica"));
  encoder.patches = static_cast<int>(section.integer(
      "patches", {0, 1 << 20}, 0, "of an image; 0: as the traffic's image_tokens say, or the encoder's own"));
  for (const char* key : {"pool", "tp", "dp", "max_batch", "patches"})
    section.allow_only(key, row >= 0 || encoder.apart, "\"model\"");
  section.finish();
}

}  // namespace

void read_separation(Section& plan, ServicePlan& service) {
  Section section = plan.object("separation", false, "what runs on pools of its own");
  service.separate = section.boolean("prefill_decode", false, "prefill and decode on pools of their own");
  service.transfer.brings_first_token = section.choice<bool>(
      "first_token", kFirstTokens, false, "with prefill_decode: who gives users the first token");
  section.allow_only("first_token", service.separate, "prefill_decode true");
  service.experts_apart = section.boolean(
      "attention_ffn", false, "attention and experts on pools of their own, in phases that have \"experts\"");
  service.encoder.apart = section.boolean("encoder", false, "encoders on a pool of their own");
  section.finish();
  read_encoder(plan.object("encoder", false, "of the images in prompts"), service.encoder);
}

void read_separate_experts(Section& phase, Section& attention, PhaseKeys& keys) {
  const std::string pool =
      attention.text("pool", "", "whose devices, where experts stand apart; else that of the phase");
  if (!pool.empty()) keys.pool = pool;
  Section experts = phase.object("experts", false, "on devices of their own (separation/attention_ffn)");
  keys.expert_pool = experts.text("pool", "", "whose devices");
  keys.expert_ranks =
      static_cast<int>(experts.integer("ep", {0, kMostRanks}, 0, "ranks that share them; 0: all devices"));
  experts.allow_only("ep", !keys.expert_pool.empty(), "\"pool\"");
  experts.finish();
  keys.microbatches = static_cast<int>(
      phase.integer("microbatches", {1, kMostMicrobatches}, 3,
                    "of an iteration, that go to experts that stand apart and back one after the other"));
  phase.allow_only("microbatches", !keys.expert_pool.empty(), "a pool in \"experts\"");
}

int pool_named(const Scenario& scenario, const std::string& name, const Place& place) {
  const std::vector<Pool>& pools = scenario.cluster->pools;
  if (name.empty()) {
    if (pools.size() > 1)
      place.fail(fmt::format("expected a name of the {} pools, found none", pools.size()));
    return 0;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (pools[i].name == name) return static_cast<int>(i);
    names.push_back(pools[i].name);
  }
  place.fail(fmt::format("expected a name in /cluster/pools, found \"{}\"{}", name, suggestion(name, names)));
}

void set_experts_apart(const Scenario& scenario, const PhaseKeys& keys, ServicePhase& phase,
                       const Place& place) {
  ServingPlan& plan = phase.plan;
  if (plan.tp > 1)
    place.fail(fmt::format("experts stand apart from attention of one rank so far, found tp {}", plan.tp));
  if (keys.two_batch)
    place.fail(
        "two batches overlap where experts stand beside attention; where they stand apart, microbatches do");
  phase.expert_pool = pool_named(scenario, keys.expert_pool, place);
  const Pool& attention = scenario.cluster->pools[phase.pool];
  const Pool& experts = scenario.cluster->pools[phase.expert_pool];
  const int ranks = keys.expert_ranks > 0 ? keys.expert_ranks : experts.devices();
  if (ranks > experts.devices())
    place.fail(fmt::format("{} ranks of experts do not fit on the {} devices of pool \"{}\"", ranks,
                           experts.devices(), experts.name));
  plan.ep = ranks;
  plan.dp = keys.dp > 0 ? keys.dp : attention.devices();
  plan.apart = {ranks, keys.microbatches, attention.devices(), experts.node.accelerators};
  phase.instances = 1;
}

void place_separate_experts(Scenario& scenario, const Document& document) {
  const Place place = place_at(document, "/plan/decode/experts");
  ServicePhase phase;
  phase.plan = scenario.serving;
  phase.pool = pool_named(scenario, scenario.service.decode.pool, place_at(document, "/plan/decode"));
  set_experts_apart(scenario, scenario.service.decode, phase, place);
  if (phase.pool != 0 || phase.expert_pool != 1 || scenario.cluster->pools.size() != 2)
    place_at(document, "/cluster/pools")
        .fail("expected the pool of attention and the pool of experts, in this order and no other");
  const Pool& pool = scenario.cluster->pools.front();
  if (phase.plan.dp > pool.devices())
    place_at(document, "/plan/decode/attention")
        .fail(fmt::format("dp {} does not fit on the {} devices of pool \"{}\"", phase.plan.dp,
                          pool.devices(), pool.name));
  scenario.serving = phase.plan;
}

namespace {

void check_experts(const Scenario& scenario, const Document& document) {
  const ServicePlan& service = scenario.service;
  bool placed = false;
  for (const auto& [keys, pointer] :
       {std::pair{&service.prefill, "/plan/prefill/experts"}, {&service.decode, "/plan/decode/experts"}}) {
    const bool given = !keys->expert_pool.empty();
    placed = placed || given;
    if (given && !service.experts_apart)
      place_at(document, pointer)
          .fail("experts have a pool of their own only with /plan/separation/attention_ffn true");
    if (given && keys->exchange == Algorithm::kRing)
      place_at(document, pointer)
          .fail(
              "ranks of attention and of experts do not gather each other's tokens: dispatch \"all-gather\" "
              "needs "
              "experts beside attention");
  }
  for (std::size_t i = 0; i < service.pools.size(); ++i)
    if (!service.pools[i].phase.expert_pool.empty())
      place_at(document, fmt::format("/plan/pools/{}/experts", i))
          .fail("experts of one of several pools do not stand apart so far");
  if (!service.separate && !service.prefill.expert_pool.empty())
    place_at(document, "/plan/prefill/experts")
        .fail("one instance does both phases: where its experts stand is said in /plan/decode/experts");
  if (service.experts_apart && !placed)
    place_at(document, "/plan/separation/attention_ffn")
        .fail(
            "expected the pool of the experts in /plan/decode/experts or /plan/prefill/experts, found none");
}

void set_encoder(Scenario& scenario, const Document& document) {
  EncoderPlan& encoder = scenario.service.encoder;
  const Place place = place_at(document, "/plan/encoder");
  if (!encoder.given()) {
    if (encoder.apart)
      place_at(document, "/plan/separation/encoder")
          .fail("expected an encoder in /plan/encoder/model, found none");
    return;
  }
  if (scenario.service.does == PoolRole::kDecode)
    place.fail("images are encoded before their prompts, and /plan/phase \"decode\" computes none");
  const VisionEncoder& model = *encoder.model;
  // Of the traffic's images, whose tokens prompts have.
  const int told =
      scenario.traffic.source
          ? static_cast<int>(std::llround(scenario.traffic.source->generator.session.image_tokens)) *
                model.patches_of_token()
          : 0;
  if (encoder.patches > 0 && told > 0 && encoder.patches != told)
    place_at(document, "/plan/encoder/patches")
        .fail(
            fmt::format("expected {}, those of the traffic's image_tokens, found {}", told, encoder.patches));
  if (encoder.patches == 0) encoder.patches = told;
  if (encoder.patches == 0) encoder.patches = model.image_patches;
  if (model.heads % encoder.tp != 0 || model.width % encoder.tp != 0)
    place.fail(fmt::format("tp {} does not divide the {} heads and {} columns of {}", encoder.tp, model.heads,
                           model.width, model.id));
  if (!encoder.apart) {
    if (!encoder.pool.empty() || encoder.dp > 0)
      place.fail("pool and dp count only with /plan/separation/encoder true");
    if (encoder.tp > 1)
      place.fail(fmt::format("an encoder beside the language model has tp 1 so far, found {}", encoder.tp));
    return;
  }
  encoder.pool_index = pool_named(scenario, encoder.pool, place);
  const Pool& pool = scenario.cluster->pools[encoder.pool_index];
  if (encoder.dp == 0) encoder.dp = pool.devices() / encoder.tp;
  if (encoder.dp == 0 || std::int64_t{encoder.dp} * encoder.tp > pool.devices())
    place.fail(fmt::format("dp {} x tp {} ranks do not fit on the {} devices of pool \"{}\"",
                           std::max(1, encoder.dp), encoder.tp, pool.devices(), pool.name));
}

}  // namespace

void check_separation(Scenario& scenario, const Document& document) {
  check_experts(scenario, document);
  set_encoder(scenario, document);
  std::vector<int> used;
  const auto use = [&](int pool, const char* pointer) {
    if (pool < 0) return;
    if (std::find(used.begin(), used.end(), pool) != used.end())
      place_at(document, pointer)
          .fail(
              fmt::format("pool \"{}\" does something else already: what stands apart has a pool of its own",
                          scenario.cluster->pools[pool].name));
    used.push_back(pool);
  };
  for (const ServicePhase& phase : scenario.service.phases) {
    const bool prefill = phase.role == PoolRole::kPrefill;
    use(phase.pool, prefill ? "/plan/prefill" : "/plan/decode");
    use(phase.expert_pool, prefill ? "/plan/prefill/experts" : "/plan/decode/experts");
  }
  use(scenario.service.encoder.pool_index, "/plan/encoder");
}

}  // namespace moebius
