#include "workloads/scenario/operations_keys.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cluster/queue/queue_plan.h"
#include "workloads/scenario/new_names.h"
#include "workloads/scenario/queueing_keys.h"
#include "workloads/scenario/scenario_parts.h"

namespace moebius {

namespace {

constexpr Time kLongest{999'993'600'000'000'000};  // 11,574 days, some 31 years

constexpr std::array kUnits{
    Named<FailureUnit>{"node", FailureUnit::kNode, "each node, with a job or without"},
    Named<FailureUnit>{"device", FailureUnit::kDevice, "each accelerator"},
    Named<FailureUnit>{"job", FailureUnit::kJob, "each job that runs: its own software"},
};
constexpr std::array kEffects{
    Named<FailureEffect>{"crash", FailureEffect::kCrash, "the job stops at once"},
    Named<FailureEffect>{"hang", FailureEffect::kHang, "the job stands still and says nothing"},
    Named<FailureEffect>{"slow", FailureEffect::kSlow, "one node drags all others"},
    Named<FailureEffect>{"silent", FailureEffect::kSilent, "results are wrong and nobody knows"},
};
constexpr std::array kCheckpointPolicies{
    Named<CheckpointPolicy>{"none", CheckpointPolicy::kNone, "every fault costs all work"},
    Named<CheckpointPolicy>{"sync", CheckpointPolicy::kSync, "the job stands still until storage has it"},
    Named<CheckpointPolicy>{
        "async", CheckpointPolicy::kAsync,
        "the job stands still until host memory has it; storage gets it beside the steps"},
    Named<CheckpointPolicy>{"memory", CheckpointPolicy::kMemory,
                            "as async, and a peer's memory has it too: it survives the loss of one node"},
};

// The names of the published mixes of causes, and none of them.
std::vector<Named<int>> mix_names() {
  std::vector<Named<int>> names{{"none", -1, "only what `kinds` and `trace` say"}};
  const auto mixes = failure_mixes();
  for (std::size_t i = 0; i < mixes.size(); ++i)
    names.push_back({mixes[i].name, static_cast<int>(i), mixes[i].help});
  return names;
}

std::string too_long(Time time) {
  constexpr double kDay = 86'400;
  return fmt::format("expected at most {:.6g} d, found {:.6g} d", kLongest.seconds() / kDay,
                     time.seconds() / kDay);
}

Time duration(Section& section, std::string_view key, std::optional<Time> otherwise, std::string_view help) {
  const Time time = section.time(key, otherwise, help);
  if (time > kLongest) section.place_of(key).fail(too_long(time));
  return time;
}

FailureKind read_kind(Section& section) {
  FailureKind kind;
  kind.name = section.text("name", std::nullopt, "one word or two");
  kind.unit = section.choice<FailureUnit>("per", kUnits, FailureUnit::kNode, "what has one of these");
  const Time apart = duration(section, "mtbf", std::nullopt, "mean time between faults of one unit");
  if (section.given("mtbf") && apart.ns == 0)
    section.place_of("mtbf").fail("expected more than 0 s, found 0 s");
  if (apart.ns > 0) kind.per_hour = 3600 / apart.seconds();
  kind.effect =
      section.choice<FailureEffect>("effect", kEffects, FailureEffect::kCrash, "what it does to a job");
  kind.nodes = static_cast<int>(
      section.integer("nodes", {0, 1 << 20}, kind.unit == FailureUnit::kJob ? 0 : 1,
                      "neighbours that it takes along until repaired; 0: none, a restart is enough"));
  const bool one = kind.effect == FailureEffect::kSlow || kind.effect == FailureEffect::kSilent;
  if (kind.unit == FailureUnit::kJob && kind.nodes > 0)
    section.place_of("nodes").fail(
        fmt::format("expected 0 with per \"job\", whose software breaks no node, found {}", kind.nodes));
  if (one && kind.nodes > 1)
    section.place_of("nodes").fail(
        fmt::format("expected at most 1, the node that is slow or wrong, found {}", kind.nodes));
  kind.repair.mean = duration(section, "repair", Time{43'200'000'000'000}, "of a node, on average");
  kind.repair.sigma = section.number("repair_sigma", {0, 4}, 1, "of its logarithm");
  kind.by_heat = section.boolean("by_heat", false, "less often where it is cooler");
  kind.slow_factor = section.number("slow_factor", {1, 1000}, 1.3, "slow: how much longer everything takes");
  section.allow_only("slow_factor", kind.effect == FailureEffect::kSlow, "effect \"slow\"");
  for (const std::string_view key : {"repair", "repair_sigma"})
    section.allow_only(key, kind.nodes > 0, "nodes above 0");
  section.finish();
  return kind;
}

// Reports and traces know them by their names.
void read_kinds(Section& section, ClusterPlan& plan) {
  for (Section& row : section.objects("kinds", false, "further kinds of faults")) {
    FailureKind kind = read_kind(row);
    require_new_name(plan.faults, kind.name, row.place_of("name"), "kinds of failures");
    plan.faults.push_back(std::move(kind));
  }
}

void read_failures(Section section, ClusterPlan& plan, bool describing) {
  const std::vector<Named<int>> names = mix_names();
  const int mix = section.choice<int>("mix", std::span<const Named<int>>(names), names[1].value,
                                      "published causes and rates, of nodes of 8 accelerators");
  const double rate =
      section.number("per_node_day", {0, 100}, 0, "rate of the mix instead of its own; 0: its own");
  const double factor = section.number("factor", {0, 1000}, 1, "on all rates of the mix");
  for (const std::string_view key : {"per_node_day", "factor"})
    section.allow_only(key, mix >= 0 || describing, "a mix other than \"none\"");
  if (mix >= 0 && !describing) {
    const FailureMix& chosen = failure_mixes()[static_cast<std::size_t>(mix)];
    const double scale = factor * (rate > 0 ? rate / chosen.per_node_day : 1);
    for (FailureKind kind : chosen.kinds) {
      kind.per_hour *= scale;
      plan.faults.push_back(kind);
    }
  }
  read_kinds(section, plan);
  for (Section& row : section.objects("trace", false, "faults at stated times")) {
    FailureInTrace fault;
    fault.time = duration(row, "time", std::nullopt, "since the beginning");
    fault.node = static_cast<int>(row.integer("node", {0, 1 << 24}, std::nullopt, "which one, from 0"));
    const std::string name = row.text("kind", std::nullopt, "a name of the mix or of `kinds`");
    if (!describing) {
      std::vector<std::string> known;
      for (const FailureKind& kind : plan.faults) known.push_back(kind.name);
      const auto at = std::find(known.begin(), known.end(), name);
      if (at == known.end())
        row.place_of("kind").fail(
            fmt::format("expected a kind of fault, found \"{}\"{}", name, suggestion(name, known)));
      fault.kind = static_cast<int>(at - known.begin());
    }
    row.finish();
    plan.trace.push_back(fault);
  }
  section.finish();
}

// Times by which something comes, all spread alike.
Delay delay(Section& section, std::string_view key, Time otherwise, double sigma, std::string_view help) {
  return {duration(section, key, otherwise, help), sigma};
}

void read_detection(Section section, DetectionPlan& detection) {
  const double sigma = section.number("sigma", {0, 4}, 0.5, "of the logarithm of all times here");
  detection.recall = section.number("recall", {0, 1}, 0.5, "share of faults that monitoring sees");
  detection.monitored = delay(section, "monitored", Time{30'000'000'000}, sigma, "until monitoring says so");
  detection.crash =
      delay(section, "crash", Time{60'000'000'000}, sigma, "otherwise: until an exit is noticed");
  detection.hang =
      delay(section, "hang", Time{600'000'000'000}, sigma, "until the collectives' watchdog speaks");
  detection.slow =
      delay(section, "slow", Time{3'600'000'000'000}, sigma, "until somebody asks why it is slow");
  detection.silent = delay(section, "silent", Time{86'400'000'000'000}, sigma, "until the loss looks wrong");
  section.finish();
}

void read_recovery(Section section, RecoveryPlan& recovery) {
  const double sigma = section.number("sigma", {0, 4}, 0.5, "of the logarithm of all times here");
  recovery.isolate = delay(section, "isolate", Time{120'000'000'000}, sigma, "to find which node it was");
  recovery.replace =
      delay(section, "replace", Time{60'000'000'000}, sigma, "to put a free node in its place");
  recovery.image = delay(section, "image", Time{120'000'000'000}, sigma, "to load images onto it");
  recovery.cache = delay(section, "cache", Time{60'000'000'000}, sigma, "to load data onto it");
  recovery.restart =
      delay(section, "restart", Time{240'000'000'000}, sigma, "processes and rendezvous; state comes on top");
  section.finish();
}

ByteRate rate(Section& section, std::string_view key, const char* otherwise, std::string_view help) {
  const std::string text = section.text(key, otherwise, help);
  const auto parsed = parse_quantity(text, Dimension::kByteRate);
  if (!parsed || *parsed <= 0)
    section.place_of(key).fail(
        fmt::format("expected {} above 0, found \"{}\"", describe(Dimension::kByteRate), text));
  return {*parsed};
}

void read_checkpoint(Section section, CheckpointPlan& checkpoint) {
  checkpoint.policy = section.choice<CheckpointPolicy>("policy", kCheckpointPolicies,
                                                       CheckpointPolicy::kAsync, "how state is saved");
  const std::string interval = section.text(
      "interval", "young", "between two: a time, or \"young\" or \"daly\": the best by their formulas");
  if (interval == "young" || interval == "daly") {
    checkpoint.choice = interval == "young" ? IntervalChoice::kYoung : IntervalChoice::kDaly;
  } else {
    const auto seconds = parse_quantity(interval, Dimension::kTime);
    if (seconds && *seconds > kLongest.seconds())
      section.place_of("interval").fail(too_long(time_from_seconds(std::min(*seconds, 9e9))));
    if (!seconds || *seconds <= 0)
      section.place_of("interval")
          .fail(fmt::format("expected \"young\", \"daly\" or a time such as \"30 min\", found \"{}\"",
                            interval));
    checkpoint.choice = IntervalChoice::kGiven;
    checkpoint.interval = time_from_seconds(*seconds);
  }
  checkpoint.keep_every = duration(section, "keep_every", Time{21'600'000'000'000},
                                   "besides the latest 64, storage keeps one in so much work");
  for (const std::string_view key : {"interval", "keep_every"})
    section.allow_only(key, checkpoint.policy != CheckpointPolicy::kNone, "a policy that saves");
  checkpoint.triggered = section.number(
      "triggered", {0, 1}, 0,
      "how often ranks save their state on a fault's signal, where every rank is left to do so");
  checkpoint.storage = rate(section, "storage", "100 GB/s", "of a whole job, into storage and out of it");
  checkpoint.host_copy = rate(section, "host_copy", "25 GB/s", "of a device to its host's memory");
  checkpoint.peer_copy = rate(section, "peer_copy", "25 GB/s", "of a device to another node's memory");
  section.allow_only("peer_copy", checkpoint.policy == CheckpointPolicy::kMemory, "policy \"memory\"");
  section.allow_only(
      "host_copy",
      checkpoint.policy == CheckpointPolicy::kAsync || checkpoint.policy == CheckpointPolicy::kMemory,
      "policy \"async\" or \"memory\"");
  section.finish();
}

void read_cooling(Section section, CoolingPlan& cooling) {
  const bool liquid =
      section.boolean("liquid", false, "liquid instead of air: sets what is not given to what is published");
  cooling.degrees_cooler =
      section.number("degrees_cooler", {0, 100}, liquid ? 7.5 : 0, "than by air; published 5 to 10");
  // exp(-0.0384 x 7.5) = 0.75: 20% to 30% fewer failures are published for 5 to 10 degrees.
  cooling.fewer_per_degree =
      section.number("fewer_per_degree", {0, 1}, 0.0384, "faults by heat, as exp(-this x degrees)");
  cooling.saved = {
      section.number("saved_watts", {0, 1e5}, liquid ? 800 : 0, "of a node's power; published 800")};
  section.finish();
}

void read_power(Section section, PowerPlan& power) {
  power.busy = section.number("busy", {0, 1.5}, 0.85, "of an accelerator's limit while its job computes");
  power.idle = section.number("idle", {0, 1}, 0.2, "while it does not");
  if (power.idle > power.busy)
    section.place_of(section.given("idle") ? "idle" : "busy")
        .fail(fmt::format("expected a busy share of at least the idle one, found {} and {}", power.busy,
                          power.idle));
  power.pue = section.number("pue", {1, 5}, 1.25, "of the building over its nodes");
  section.finish();
}

ClusterJob read_job_keys(Section& section, const ModelCatalog* models, std::string& steps) {
  ClusterJob job;
  job.name = section.text("name", std::nullopt, "for people");
  job.nodes = static_cast<int>(section.integer("nodes", {1, 1 << 24}, std::nullopt, "that it runs on"));
  job.arrival = duration(section, "arrival", Time{}, "since the beginning");
  job.work = duration(section, "work", Time{}, "that it has to do without interruptions; 0 s: until the end");
  steps = section.text("scenario", "", "a training scenario: its step is simulated; relative to this file");
  job.step = duration(section, "step_time", Time{}, "instead of `scenario`");
  job.tokens_per_s = section.number("tokens_per_s", {0, 1e15}, 0, "while it runs, instead of `scenario`");
  const double bytes = section.number("bytes_per_parameter", {0, 64}, 14,
                                      "of a checkpoint: BF16 weights, FP32 master weights and two moments");
  const std::string model = section.text(
      "model", "", "a name of `moebius list models`: the size of its state; empty: that of `scenario`");
  const std::string state = section.text("state", "", "instead of `model`: bytes of a checkpoint");
  if (!model.empty() && !state.empty())
    section.place_of("state").fail("expected \"model\" or \"state\", found both");
  section.allow_only("tokens_per_s", steps.empty(), "step_time");
  section.allow_only("bytes_per_parameter", state.empty(), "model");
  if (models != nullptr && !model.empty()) {
    Value name;
    name.kind = Value::Kind::kString;
    name.text = model;
    const Model known = models->model(name, section.place_of("model"));
    job.state = {bytes * count_parameters(known).total()};
    job.model = known.id;
  }
  job.bytes_per_parameter = bytes;
  if (!state.empty()) {
    const auto parsed = parse_quantity(state, Dimension::kBytes);
    if (!parsed || *parsed <= 0)
      section.place_of("state").fail(
          fmt::format("expected {} above 0, found \"{}\"", describe(Dimension::kBytes), state));
    job.state = {*parsed};
  }
  section.finish();
  return job;
}

}  // namespace

void read_operations(Section& top, Scenario& scenario, const ModelCatalog* models) {
  OperationsScenario& operations = scenario.operations.emplace();
  ClusterPlan& plan = operations.plan;
  Section section = top.object("operations", true, "what breaks, and who mends it how");
  plan.duration = duration(section, "duration", std::nullopt, "of the cluster's time that is simulated");
  if (models != nullptr && plan.duration.ns <= 0)
    section.place_of("duration").fail("expected more than no time, found none");
  plan.runs = static_cast<int>(section.integer("runs", {1, 100'000}, 20, "courses with seeds of their own"));
  plan.spares =
      static_cast<int>(section.integer("spares", {0, 1 << 24}, 0, "nodes kept free for jobs that lose one"));
  read_failures(section.object("failures", false, "what breaks, how often"), plan, models == nullptr);
  read_detection(section.object("detection", false, "until somebody knows"), plan.detection);
  read_recovery(section.object("recovery", false, "until the job runs again"), plan.recovery);
  read_checkpoint(section.object("checkpoint", false, "what is saved, when"), plan.checkpoint);
  read_cooling(section.object("cooling", false, "air, or liquid"), plan.cooling);
  read_power(section.object("power", false, "what nodes draw"), plan.power);
  section.finish();
  const bool jobs_needed = models != nullptr && !top.given("queueing");
  for (Section& job : top.objects("jobs", jobs_needed,
                                  "get nodes in the order of their arrival, of equal ones in this order; the "
                                  "first who does not fit holds up the rest")) {
    std::string steps;
    ClusterJob of = read_job_keys(job, models, steps);
    require_new_name(plan.jobs, of.name, job.place_of("name"), "jobs");
    plan.jobs.push_back(std::move(of));
    operations.job_scenarios.push_back(std::move(steps));
  }
  read_queueing(top, scenario, models);
  if (models == nullptr) return;
  const Pool& pool = scenario.cluster->pools.front();
  plan.nodes = pool.nodes;
  plan.devices_per_node = pool.node.accelerators;
  plan.overhead_power = pool.node.overhead_power;
  plan.node_power = pool.node.overhead_power + pool.accelerator.power * pool.node.accelerators;
  plan.node_price = pool.accelerator.price * pool.node.accelerators;
}

}  // namespace moebius
