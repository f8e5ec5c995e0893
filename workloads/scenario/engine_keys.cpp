#include "workloads/scenario/engine_keys.h"
#include "workloads/scenario/served_stage_keys.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/scenario/service_keys.h"
#include "workloads/serving/system/device_reserve.h"
#include "workloads/serving/system/measured_host.h"

namespace moebius {
namespace {

constexpr std::array kPlaces{
    Named<bool>{"global", false, "every iteration is put together from all running sequences"},
    Named<bool>{"slots", true,
                "a sequence keeps a place with buffers of its own: what has changed is written"},
};
constexpr std::array kPipelines{
    Named<bool>{"serial", false, "the engine's loop takes requests in and sends tokens, too"},
    Named<bool>{"parallel", true, "workers of their own take requests in and send tokens"},
};
constexpr std::array kSamplings{
    Named<Sampling>{"device", Sampling::kShards, "tokens are chosen where the logits are"},
    Named<Sampling>{"gathered", Sampling::kGathered,
                    "tensor-parallel ranks gather the logits of the whole vocabulary first"},
    Named<Sampling>{"host", Sampling::kHost,
                    "logits are copied to the host, which chooses tokens before the next iteration"},
};
constexpr std::array kLaunches{
    Named<LaunchMode>{"hidden", LaunchMode::kHidden, "far enough ahead that the device never waits"},
    Named<LaunchMode>{"kernel", LaunchMode::kKernel, "one by one"},
    Named<LaunchMode>{"graph", LaunchMode::kGraph,
                      "decoding as captured graphs of some sizes, filled up to the next; prompts one by one"},
};
constexpr std::array kCapturedCounts{
    Named<CapturedCount>{"sequences", CapturedCount::kSequences, "that decode"},
    Named<CapturedCount>{"tokens", CapturedCount::kTokens, "that they decode, those of guesses among them"},
};
constexpr std::array kPreemptions{
    Named<bool>{"recompute", false, "all that a preempted sequence had is computed again"},
    Named<bool>{"swap", true, "its keys wait in the host's memory"},
};
constexpr std::array kLayouts{
    Named<bool>{"flat", false, "prompts of an iteration one after the other"},
    Named<bool>{"padded", true, "prompts of an iteration as rows of one length, the longest's"},
};

HostCosts read_costs(const Value& value, const Place& place, const HostCosts& given) {
  if (value.kind == Value::Kind::kString && value.text == "none") return given;
  HostCosts costs = given;
  if (value.kind == Value::Kind::kString && value.text == "measured") {
    set_measured_costs(costs);
    return costs;
  }
  if (value.kind != Value::Kind::kObject)
    place.fail(
        fmt::format(R"(expected "none", "measured" or an object of times, found {})", value.excerpt()));
  Reader form(value, place);
  costs.per_iteration = form.time("per_iteration", given.per_iteration);
  costs.per_sequence = form.time("per_sequence", given.per_sequence);
  costs.per_request = form.time("per_request", Time{});
  costs.per_prompt_token = form.time("per_prompt_token", Time{});
  costs.per_image = form.time("per_image", Time{});
  costs.per_sample = form.time("per_sample", Time{});
  costs.per_token = form.time("per_token", Time{});
  form.finish();
  return costs;
}

void read_overhead(Section& section, HostCosts& host) {
  const DescriptionPtr form =
      description_of("",
                     "what the host's work takes: \"none\" (but for host_per_iteration and "
                     "host_per_sequence), \"measured\", or times: per_iteration and per_sequence of the "
                     "loop (the framework's where it does not say them), per_request, per_prompt_token and "
                     "per_image of what comes in, per_sample of tokens that the host chooses, per_token of "
                     "what goes out");
  set_keyword(form->keywords, "type", array_value({text_value("string"), text_value("object")}));
  set_keyword(form->keywords, "default", text_value("none"));
  const Value* value = section.value("host_overhead", false, form);
  if (value == nullptr) return;
  const Place place = section.place_of("host_overhead");
  const bool twice = (section.given("host_per_iteration") && host.per_iteration.ns > 0) ||
                     (section.given("host_per_sequence") && host.per_sequence.ns > 0);
  const HostCosts costs = read_costs(*value, place, host);
  if (twice && (value->kind != Value::Kind::kString || value->text != "none"))
    place.fail("host_per_iteration and host_per_sequence say the same: expected one of both");
  host = costs;
}

// When prompts join the sequences that decode, and what they leave these. Where a pool does one of both there
// is nothing to join.
constexpr std::array kJoiningKeys{
    "receive_every", "await_prompts",        "gather_prompts",       "gather_iterations",
    "gather_share",  "output_reserve_decay", "output_reserve_start", "newcomer_reserve"};

bool both_on_a_pool(const ServicePlan& service) {
  if (service.separate || service.does != PoolRole::kBoth) return false;
  return service.pools.empty() ||
         std::any_of(service.pools.begin(), service.pools.end(),
                     [](const PoolKeys& keys) { return keys.role == PoolRole::kBoth; });
}

}  // namespace

void drop_joining_keys(Value& scheduler) {
  for (const char* key : kJoiningKeys) {
    const Value* item = scheduler.find(key);
    if (item == nullptr) continue;
    const auto at = item - scheduler.items.data();
    scheduler.keys.erase(scheduler.keys.begin() + at);
    scheduler.items.erase(scheduler.items.begin() + at);
  }
}

namespace {

void read_joining(Section& scheduler, const Framework& framework, ServicePlan& service) {
  EngineKeys& engine = service.engine;
  engine.receive_every =
      scheduler.whole("receive_every", {1, 1 << 16}, 1,
                      "the loop looks for new requests after so many iterations without prompts");
  engine.decided_ahead = scheduler.boolean(
      "decided_ahead", framework.decided_ahead,
      "an iteration is decided when the one before begins: what comes meanwhile is in the one after");
  engine.await_prompts = scheduler.whole(
      "await_prompts", {0, 1 << 16}, 0,
      "replicas that share experts begin prompts together, for which they wait so many iterations at "
      "most; 0: they do not wait");
  engine.gather_prompts = scheduler.whole("gather_prompts", {0, 1 << 16}, 0,
                                          "and so many more when all have some, to gather further ones");
  engine.gather_iterations = scheduler.whole(
      "gather_iterations", {0, 1 << 16}, 0,
      "prompts wait so many iterations at most, while others decode, until they fill gather_share of "
      "the budget");
  engine.gather_share = scheduler.number("gather_share", {0, 1}, 0.8, "see gather_iterations");
  scheduler.allow_only("gather_share", engine.gather_iterations > 0, "\"gather_iterations\"");
  if (engine.gather_prompts > 0 && engine.await_prompts == 0)
    scheduler.place_of("gather_prompts").fail("\"gather_prompts\" counts only with \"await_prompts\"");
  for (const char* key : kJoiningKeys)
    scheduler.allow_only(key, both_on_a_pool(service), "prefill and decode on one pool");
}

// How far graphs go. What an engine reckons of its devices is of each phase: see set_engine().
void read_captured_most(Section& scheduler, const Framework& framework, EngineKeys& engine) {
  const bool graphs = engine.launch == LaunchMode::kGraph;
  const bool reckons = framework.captured_most == kCapturedBySize;
  engine.captured_most =
      scheduler.whole("captured_most", {0, 1 << 16}, graphs && !reckons ? framework.captured_most : 0,
                      "graphs are captured for so many sequences or tokens of a replica at most; more launch "
                      "kernels one by one; 0: for as many as may decode at once");
  if (graphs && reckons && !scheduler.given("captured_most")) engine.captured_most = kCapturedBySize;
  engine.captured_counts = scheduler.choice<CapturedCount>(
      "captured_counts", kCapturedCounts, framework.captured_counts, "what captured_most is a number of");
  scheduler.allow_only("captured_counts", engine.captured_most > 0, "a number of \"captured_most\"");
}

// Iterations that are replayed as graphs. Where nobody fills them up, engines capture more of them.
void read_graphs(Section& scheduler, const Framework& framework, EngineKeys& engine) {
  engine.captured_padding = scheduler.boolean(
      "captured_padding", framework.captured_padding || engine.slots,
      "iterations are filled up to the next size that is captured; else only those of just such a size are "
      "replayed, on all replicas that share experts alike, and others launch kernels one by one");
  const bool pads = engine.captured_padding;
  engine.captured_step =
      scheduler.whole("captured_step", {1, 1 << 16}, pads ? 8 : 1,
                      "graphs are captured for 1, 2, 4 and multiples of so many sequences; of slots, "
                      "for all alone");
  engine.captured_doubled_from =
      scheduler.whole("captured_doubled_from", {0, 1 << 16},
                      pads ? framework.captured_doubled_from : framework.exact_doubled_from,
                      "from so many sequences on, each size that is captured is twice the one before; 0: "
                      "multiples of captured_step throughout");
  read_captured_most(scheduler, framework, engine);
  const bool graphs = engine.launch == LaunchMode::kGraph;
  engine.captured_prompts =
      scheduler.whole("captured_prompts", {0, 1 << 24}, graphs ? framework.captured_prompts : 0,
                      "iterations with prompts are replayed as graphs, too, where they have so many tokens "
                      "at most; 0: none");
  for (const char* key : {"captured_padding", "captured_step", "captured_doubled_from", "captured_most",
                          "captured_counts", "captured_prompts"})
    scheduler.allow_only(key, graphs, "launch \"graph\"");
}

}  // namespace

void read_engine_keys(Section& scheduler, const Framework& framework, ServicePlan& service) {
  EngineKeys& engine = service.engine;
  HostCosts& host = service.host;
  engine.slots = scheduler.choice<bool>("policy", kPlaces, false, "who holds what sequences need");
  engine.slot_tokens =
      scheduler.whole("slot_tokens", {0, 1 << 24}, 0,
                      "tokens for which every running sequence holds the cache; 0: as it grows");
  read_overhead(scheduler, host);
  host.by_change = engine.slots;
  host.parallel =
      scheduler.choice<bool>("pipeline", kPipelines, false, "who takes requests in and sends tokens");
  host.input_workers =
      scheduler.whole("input_workers", {1, 1 << 16}, 1, "a request at a time each, for the whole service");
  host.output_workers =
      scheduler.whole("output_workers", {1, 1 << 16}, 1, "share the tokens of an instance's iteration");
  for (const char* key : {"input_workers", "output_workers"})
    scheduler.allow_only(key, host.parallel, "pipeline \"parallel\"");
  engine.sampling =
      scheduler.choice<Sampling>("sampling", kSamplings, framework.sampling, "where tokens are chosen");
  engine.launch = scheduler.choice<LaunchMode>("launch", kLaunches, framework.launch,
                                               "how the host launches kernels; how long one takes: "
                                               "/cluster/launch");
  const bool swap = scheduler.choice<bool>("preemption", kPreemptions, false,
                                           "what becomes of a sequence for which the cache has no room left");
  // vLLM's default of swap_space: 4 GiB a device.
  const Bytes space = scheduler.bytes("swap_space", Bytes{0x1p32}, "of the host's memory a device, to swap");
  engine.swap_space = swap ? space : Bytes{};
  scheduler.allow_only("swap_space", swap, "preemption \"swap\"");
  read_joining(scheduler, framework, service);
  read_graphs(scheduler, framework, engine);
}

void read_guesses(Section& section, const ModelCatalog* models, ServicePlan& service) {
  const std::string name = section.text("model", "", "whose guesses they are; empty: a module of the model");
  section.allow_only("model", service.speculation.drafts > 0, "\"mtp\" guesses");
  if (models != nullptr && !name.empty()) {
    const Place place = section.place_of("model");
    Value value;
    value.kind = Value::Kind::kString;
    value.text = name;
    service.engine.draft_model = std::make_shared<const Model>(models->model(value, place));
  }
  const DescriptionPtr form = description_of(
      "array", "that each guess in turn holds, given that those before it did, in place of acceptance");
  form->items = description_of("number", "from 0 to 1");
  const Value* value = section.value("acceptance_by_place", false, form);
  if (value == nullptr) return;
  section.allow_only("acceptance", false, "guesses that all hold alike, without acceptance_by_place");
  for (const Value& item : value->items) service.speculation.by_place.push_back(item.number);
  const auto wrong = [](const Value& item) {
    return (item.kind != Value::Kind::kNumber && item.kind != Value::Kind::kInteger) || item.number < 0 ||
           item.number > 1;
  };
  const auto drafts = static_cast<std::size_t>(service.speculation.drafts);
  if (value->kind != Value::Kind::kArray || value->items.size() != drafts ||
      std::any_of(value->items.begin(), value->items.end(), wrong))
    section.place_of("acceptance_by_place")
        .fail(fmt::format("expected {} numbers from 0 to 1, one for each guess, found {}", drafts,
                          value->excerpt()));
}

void read_layout(Section& plan, ServicePlan& service) {
  service.engine.padded = plan.choice<bool>("layout", kLayouts, false, "prompts that share an iteration");
}

namespace {

// What decodes beside a sequence's own row, its guesses, are rows of its replica, too.
int captured_of(const Scenario& scenario, const ServicePhase& phase) {
  const EngineKeys& engine = scenario.service.engine;
  if (engine.launch != LaunchMode::kGraph) return 0;
  if (engine.captured_most == 0 || !scenario.cluster) return kAllCaptured;
  if (engine.captured_most == kCapturedBySize) {
    const EngineSize size = engine_size(phase.plan);
    return captured_sequences(scenario.cluster->pools[phase.pool].accelerator.memory, size.dp * size.tp);
  }
  const bool tokens = engine.captured_counts == CapturedCount::kTokens;
  return engine.captured_most / (tokens ? 1 + phase.plan.drafts : 1);
}

}  // namespace

void set_engine(ServicePhase& phase, const Scenario& scenario) {
  const ServicePlan& service = scenario.service;
  const EngineKeys& engine = service.engine;
  ServingPlan& plan = phase.plan;
  plan.launch = engine.launch;
  plan.captured_prompts = engine.captured_prompts;
  plan.sampling = engine.sampling;
  plan.drafts = phase.role == PoolRole::kPrefill ? 0 : service.speculation.drafts;
  plan.captured = captured_of(scenario, phase);
}

void show_captured(Scenario& scenario) {
  const auto said =
      std::find_if(scenario.settings.begin(), scenario.settings.end(),
                   [](const Setting& setting) { return setting.pointer == "/plan/scheduler/captured_most"; });
  const std::vector<ServicePhase>& phases = scenario.service.phases;
  if (scenario.service.engine.captured_most != kCapturedBySize || said == scenario.settings.end()) return;
  const auto alike = [&](const ServicePhase& phase) {
    return phase.plan.captured == phases.front().plan.captured;
  };
  if (!phases.empty())
    said->value = std::all_of(phases.begin(), phases.end(), alike)
                      ? std::to_string(phases.front().plan.captured)
                      : "\"by pool\"";
}

NeedsTiming needs_timing(const Scenario& scenario) {
  const ServicePlan& service = scenario.service;
  const EngineKeys& engine = service.engine;
  if (engine.slots || engine.sampling == Sampling::kHost || engine.padded || engine.slot_tokens > 0 ||
      engine.swap_space.value > 0 || engine.launch != LaunchMode::kHidden || service.host.takes_time() ||
      service.host.reception.ns > 0 || service.host.reception_per_token.ns > 0)
    return {"/plan/scheduler", "the engine around iterations is"};
  if (const char* pointer = stages_given(service); *pointer != 0) return {pointer, "a pipeline of stages is"};
  // Prompts of a batch that is carried out join as soon as there is room.
  if (is_batch(scenario) && !joins_by_and_by(scenario) &&
      (engine.gather_prompts > 0 || engine.gather_iterations > 0))
    return {"/plan/scheduler", "how prompts gather is"};
  // A service that is carried out refuses guesses itself.
  if (is_batch(scenario) && service.speculation.drafts > 0)
    return {"/plan/decode/speculative", "guesses are"};
  return {};
}

void check_engine(const Scenario& scenario, const Document& document) {
  const ServicePlan& service = scenario.service;
  const EngineKeys& engine = service.engine;
  const auto refuse = [&](bool wrong, const char* pointer, const std::string& sentence) {
    if (wrong) place_at(document, pointer).fail(sentence);
  };
  refuse(service.speculation.drafts > 0 && !service.full_steps && !engine.draft_model &&
             scenario.model.mtp_layers == 0,
         "/plan/decode/speculative/mtp",
         fmt::format("{} has no module that guesses: expected 0, or \"model\" beside it", scenario.model.id));
  const bool keeps_states = scenario.model.delta.given();
  refuse(keeps_states && engine.swap_space.value > 0, "/plan/scheduler/preemption",
         fmt::format("{} keeps states of sequences, which do not go to the host's memory so far: expected "
                     "\"recompute\"",
                     scenario.model.id));
  refuse(keeps_states && service.prefix_cache, "/plan/cache/prefix",
         fmt::format(
             "{} keeps states of sequences, which no block holds, so that prefixes are not shared so far: "
             "expected false",
             scenario.model.id));
  const auto given = [&](const char* pointer) {
    return std::any_of(scenario.settings.begin(), scenario.settings.end(),
                       [&](const Setting& of) { return of.pointer == pointer && of.given; });
  };
  refuse(engine.launch == LaunchMode::kHidden && given("/cluster/launch"), "/cluster/launch",
         "\"launch\" counts only with /plan/scheduler/launch \"kernel\" or \"graph\"");
  const int rows = 1 + service.speculation.drafts;
  refuse(engine.captured_counts == CapturedCount::kTokens && engine.captured_most > 0 &&
             engine.captured_most < rows,
         "/plan/scheduler/captured_most",
         fmt::format("a sequence decodes {} tokens in an iteration: expected 0 or at least {}, found {}",
                     rows, rows, engine.captured_most));
  const NeedsTiming needs = needs_timing(scenario);
  if (service.full_steps)
    refuse(*needs.pointer != 0, needs.pointer,
           fmt::format("{} simulated with steps \"surface\" only, found \"full\"", needs.what));
  if (!service.full_steps) {
    constexpr const char* kWhole =
        "iterations are timed one by one, on devices and a network that are whole: expected steps \"full\" "
        "with it";
    refuse(!scenario.faults.empty(), "/faults", kWhole);
    refuse(scenario.cluster && !scenario.cluster->damaged.empty(), "/cluster/failed", kWhole);
  }
  refuse(service.speculation.drafts == 0 && service.speculation.acceptance > 0,
         "/plan/decode/speculative/acceptance", "\"acceptance\" counts only with \"mtp\" guesses");
  refuse(engine.padded && service.pools.empty() && service.batching == BatchPolicy::kMixed, "/plan/layout",
         "rows of one length hold prompts alone: expected \"flat\" with batching \"mixed\"");
  refuse(engine.slot_tokens > 0 && service.prefix_cache, "/plan/scheduler/slot_tokens",
         "what a slot holds is its own, so that prefixes are not shared: expected 0 with cache/prefix");
  refuse(service.host.per_sample.ns > 0 && engine.sampling != Sampling::kHost,
         "/plan/scheduler/host_overhead", "per_sample counts only with sampling \"host\"");
}

}  // namespace moebius
