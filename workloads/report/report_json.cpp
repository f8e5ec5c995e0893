// The report as one JSON object in SI units.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hw/error.h"
#include "workloads/report/expert_loads_json.h"
#include "workloads/report/job_kinds.h"
#include "workloads/report/replay_report.h"
#include "workloads/report/report.h"
#include "workloads/report/report_cluster.h"
#include "workloads/report/report_figures.h"
#include "workloads/report/report_queues.h"
#include "workloads/report/report_serving.h"
#include "workloads/report/report_uncertainty.h"
#include "workloads/report/step_price.h"
#include "workloads/serving/serving.h"

namespace moebius {

namespace {

using Json = nlohmann::ordered_json;

void add_rows(Json& json, const FigureRows& rows) {
  for (const auto& [key, value] : rows) json[key] = value;
}

void add_tree(Json& json, const FigureTree& tree) {
  for (const auto& [key, value] : tree.rows) std::visit([&, &at = key](auto of) { json[at] = of; }, value);
  for (const auto& [key, part] : tree.parts) add_tree(json[key], part);
  for (const auto& [key, list] : tree.lists) json[key] = list;
}

void add_training(Json& json, const Report& report) {
  const TrainingFigures figures = training_figures(report);
  json["step_time_s"] = figures.step_time_s;
  json["tokens_per_s"] = figures.tokens_per_s;
  json["tokens_per_s_per_device"] = figures.tokens_per_s / figures.devices;
  for (const auto& [key, rows] : kind_rows(report, figures.step_time_s)) add_rows(json[key], rows);
  json["devices"] = figures.devices;
  if (!report.facts.losses.empty()) json["loss"] = report.facts.losses;
  if (report.scenario->training.first_step > 0) json["first_step"] = report.scenario->training.first_step;
  // A share of the peak of devices that did not run says nothing.
  const auto of_devices = [&](double value) { return report.facts.on_cluster ? Json(value) : Json(nullptr); };
  json["mfu"] = of_devices(figures.mfu);
  json["mfu_causal"] = of_devices(figures.mfu_causal);
  json["tflops_per_device"] = of_devices(figures.tflops_per_device);
  json["tflops_per_device_causal"] = of_devices(figures.tflops_per_device_causal);
  add_tree(json["cost"], cost_tree(step_price(report)));
}

void add_tenants(Json& json, const std::vector<TenantFigures>& tenants) {
  for (const TenantFigures& tenant : tenants) {
    json["tenants"][tenant.name] = {
        {"alone_s", tenant.alone_s}, {"together_s", tenant.together_s}, {"slowdown", tenant.slowdown()}};
  }
}

void add_flows(Json& json, const Report& report) {
  const FlowTimes& flows = *report.flows;
  json["flows"] = {{"count", flows.count}, {"mean_fct_s", flows.mean_s}, {"p50", flows.p50_s},
                   {"p99", flows.p99_s},   {"max", flows.max_s},         {"min", flows.min_s}};
  if (report.facts.resent_share) json["flows"]["resent_share"] = *report.facts.resent_share;
}

void add_collective(Json& json, const Report& report) {
  if (report.flows) return add_flows(json, report);
  if (!report.tenants.empty()) return add_tenants(json, report.tenants);
  const CollectiveRates figures = collective_figures(report);
  json["collective"] = {
      {"time_s", figures.time_s}, {"busbw_bytes_per_s", figures.busbw}, {"algbw_bytes_per_s", figures.algbw}};
}

// The first tokens of each request are enough to see where two runs part; the hash is of all.
void add_tokens(Json& json, const std::vector<std::vector<std::int32_t>>& tokens) {
  constexpr std::size_t kFirst = 16, kRequests = 64;
  Json first = Json::array();
  for (std::size_t i = 0; i < std::min(kRequests, tokens.size()); ++i)
    first.push_back(
        std::vector<std::int32_t>(tokens[i].begin(), tokens[i].begin() + std::min(kFirst, tokens[i].size())));
  json["tokens"] = {{"hash", fmt::format("{:016x}", hash_of(tokens))}, {"first", first}};
}

void add_serving(Json& json, const Report& report) {
  add_tree(json, serving_tree(report));
  const ServingPlan& plan = report.scenario->serving;
  if (plan.shares_by(ExpertSharing::kDispatch))
    json["dispatch"] = {{"prefill", dispatch_name(plan.prefill_exchange)},
                        {"decode", dispatch_name(plan.decode_exchange)}};
  if (!report.facts.tokens.empty()) add_tokens(json, report.facts.tokens);
}

Json breakdown_json(const Report& report) {
  const TimeFigures figures = time_figures(report);
  Json kinds = Json::object();
  for (const TimeFigures::Kind& kind : figures.kinds) {
    Json& row = kinds[std::string(to_string(kind.kind))];
    if (is_communication(kind.kind) || kind.busy > 0) {
      row = {{"busy_s", kind.busy}, {"exposed_s", kind.exposed}, {"waiting_s", kind.waiting}};
    } else {
      row = {{"compute_s", kind.compute}};
      if (kind.flops > 0) row["flops"] = kind.flops;
    }
  }
  Json json{{"compute_s", figures.compute},
            {"exposed_communication_s", figures.exposed},
            {"hidden_communication_s", figures.hidden},
            {"waiting_s", figures.waiting},
            {"bubble_s", figures.bubble},
            {"optimizer_s", figures.optimizer},
            {"by_kind", kinds}};
  if (report.scenario->kind == ScenarioKind::kTraining) add_rows(json, pass_rows(pass_figures(report)));
  return json;
}

Json memory_json(const MemoryReport& memory) {
  const ClassMemory& worst = memory.classes[memory.worst_class];
  Json kinds = Json::object();
  for (int i = 0; i < kNumMemoryKinds; ++i) {
    if (!shown(memory, static_cast<MemoryKind>(i))) continue;
    kinds[std::string(to_string(static_cast<MemoryKind>(i)))] = worst.at_peak[i].value;
  }
  Json json = {{"peak_bytes", worst.peak.value},
               {"capacity_bytes", memory.capacity.value},
               {"fits", memory.fits()},
               {"class", memory.worst_class},
               {"alive_microbatches", worst.peak_microbatches},
               {"by_kind", kinds}};
  if (memory.reserve.value > 0) json["reserve_bytes"] = memory.reserve.value;
  if (memory.host_peak().value > 0)
    json["host"] = {{"peak_bytes", memory.host_peak().value},
                    {"capacity_bytes", memory.host_capacity.value},
                    {"fits", memory.fits_on_host()}};
  return json;
}

void add_network(Json& json, const NetworkUse& use, double seconds) {
  json["routing"] = use.routing;
  json["queue_pairs"] = use.queue_pairs;
  json["damaged_parts"] = use.damaged;
  json["most_flows"] = use.most_flows;
  json["port_imbalance"] = use.port_imbalance();
  if (const TierUse* narrowest = use.narrowest()) {
    json["bisection_share"] = narrowest->busy_share(seconds);
    json["narrowest_tier"] = narrowest->tier;
  }
  const TierUse* binding = use.binding();
  if (use.beyond_the_run(seconds)) {
    json["shares_wires"] = false;
  } else if (binding != nullptr) {
    json["binding"] = {{"tier", binding->tier}, {"busy_share", binding->most_busy_share(seconds)}};
  }
  if (const auto* slowest = use.slowest_stage()) {
    Json& forwarding = json["forwarding"];
    forwarding = {{"seconds", use.forwarding_seconds}, {"binding", slowest->tier}};
    for (const auto& stage : use.forwarding)
      forwarding["stages"].push_back(
          {{"tier", stage.tier}, {"busy_share", stage.seconds / use.forwarding_seconds}});
  }
  json["tiers"] = Json::array();
  for (const TierUse& tier : use.tiers)
    json["tiers"].push_back(
        {{"tier", tier.tier},
         {"ports", tier.ports},
         {tier.counts_messages ? "carried_messages" : "carried_bytes", tier.bytes},
         {tier.counts_messages ? "capacity_messages_per_s" : "capacity_bytes_per_s", tier.capacity},
         {"busy_share", tier.busy_share(seconds)},
         {"most_busy_share", tier.most_busy_share(seconds)},
         {"imbalance", tier.imbalance()}});
}

Json faults_json(const std::vector<FaultFacts>& faults) {
  Json rows = Json::array();
  for (const FaultFacts& fault : faults) {
    Json row = {{"kind", fault.kind}, {"place", fault.place}, {"left_share", fault.left}};
    const auto add_time = [&](const char* key, Time time) {
      if (time != kForever) row[key] = time.seconds();
    };
    add_time("down_s", fault.down);
    add_time("failover_s", fault.failover);
    add_time("last_failover_s", fault.last_failover);
    add_time("detected_s", fault.detected);
    add_time("mitigated_s", fault.mitigated);
    add_time("up_s", fault.up);
    row["stalled_bytes"] = fault.stalled_bytes;
    row["moved_bytes"] = fault.moved_bytes;
    row["detour_bytes"] = fault.detour_bytes;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json collectives_json(const std::vector<CollectiveChoice>& choices) {
  Json rows = Json::array();
  for (const CollectiveChoice& choice : choices) {
    const bool library = choice.chosen.algorithm == Algorithm::kAuto;
    Json row = {{"operation", to_string(choice.kind)},
                {"group", to_string(choice.group)},
                {"ranks", choice.ranks},
                {"nodes", choice.nodes},
                {"channels", choice.channels},
                {"bytes", choice.bytes},
                {"algorithm", library ? "library" : to_string(choice.chosen.algorithm)},
                {"alone_s", choice.chosen.seconds}};
    row["steps"] = choice.by_structure ? "structure" : "library";
    if (!choice.chosen.protocol.empty()) row["protocol"] = choice.chosen.protocol;
    for (const AlgorithmTime& time : choice.candidates)
      row["candidates"][std::string(to_string(time.algorithm))] = time.seconds;
    for (const WireUse& use : choice.wires)
      row["links"][use.kind] = {{"wires", use.wires},
                                {"bytes", use.bytes},
                                {"busiest_bytes", use.busiest_bytes},
                                {"busiest_s", use.busiest_seconds},
                                {"busiest_messages", use.messages},
                                {"posting_s", use.posting_seconds}};
    rows.push_back(row);
  }
  return rows;
}

Json advice_json(const Advice& advice) {
  Json causes = Json::array(), switches = Json::array();
  for (const Cause& cause : advice.causes)
    causes.push_back({{"cause", cause.name}, {"seconds", cause.seconds}});
  for (const TriedSwitch& tried : advice.switches) {
    Json row = {{"switch", tried.name}, {"set", tried.sets}};
    const bool ran = tried.refusal.empty();
    if (ran) row["step_time_s"] = tried.step_time_s, row["gain"] = tried.gain;
    if (ran && !tried.lacks.empty()) row["lacks"] = tried.lacks;
    if (!ran) row["refusal"] = tried.refusal;
    switches.push_back(row);
  }
  Json explain = {{"causes", causes}, {"switches", switches}};
  if (!advice.untried.empty()) explain["untried"] = advice.untried;
  return explain;
}

Json body(const Report& report) {
  const Scenario& scenario = *report.scenario;
  Json json = {{"scenario", scenario.name},
               {"kind", to_string(scenario.kind)},
               {"executor", report.facts.executor},
               {"detail", report.facts.detail},
               {"seed", scenario.seed}};
  switch (scenario.kind) {
    case ScenarioKind::kTraining:
      add_training(json, report);
      break;
    case ScenarioKind::kCollective:
      add_collective(json, report);
      break;
    case ScenarioKind::kServing:
      add_serving(json, report);
      break;
    case ScenarioKind::kKvReplay:
      for (const auto& [key, count] : replay_rows(*report.replay)) json["kv"][key] = count;
      json["kv"]["hit_share"] = report.replay->hit_share();
      return json;
    case ScenarioKind::kCluster:
      add_tree(json["cluster"], report.queues ? queues_tree(*report.queues) : cluster_tree(*report.cluster));
      return json;
  }
  if (report.service) return json;  // the rest is of runs that carry out every op
  json["breakdown"] = breakdown_json(report);
  if (!report.experts.empty()) json["experts"] = Json::parse(loads_json(report.experts));
  if (report.memory) json["memory"] = memory_json(*report.memory);
  // `sent` is of one step, `tiers` are of all.
  json["network"] = {{"steps", steps_of(report)},
                     {"sent_bytes", sent_bytes(report)},
                     {"sent_bytes_per_device", sent_bytes(report) / scenario.ranks()}};
  if (report.facts.network)
    add_network(json["network"], *report.facts.network, report.metrics.makespan.seconds());
  if (!report.facts.faults.empty()) json["faults"] = faults_json(report.facts.faults);
  return json;
}

// Keys may have dots themselves, as names of classes and jobs do.
std::optional<double> value_at(const Json& json, const std::string& path) {
  if (!json.is_object()) return std::nullopt;
  for (std::size_t dot = path.find('.');; dot = path.find('.', dot + 1)) {
    const auto below = json.find(path.substr(0, dot));
    if (dot == std::string::npos)
      return below == json.end() || !below->is_number() ? std::nullopt : std::optional(below->get<double>());
    if (below == json.end()) continue;
    if (const auto value = value_at(*below, path.substr(dot + 1))) return value;
  }
}

void add_names(const Json& json, const std::string& above, std::vector<std::string>& names) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) add_names(value, above + key + ".", names);
    if (value.is_number() || value.is_null()) names.push_back(above + key);
  }
}

std::string nearest_figure(const Json& json, const std::string& path) {
  std::vector<std::string> names;
  add_names(json, "", names);
  std::erase(names, path);  // it may stand there and be no number
  return nearest_name(path, names);
}

JudgedExpectation judge(const Json& json, const Expectation& row) {
  using Verdict = JudgedExpectation::Verdict;
  JudgedExpectation judged{.row = &row, .ours = value_at(json, row.metric)};
  if (!judged.ours) {
    judged.verdict = Verdict::kAbsent;
    judged.nearest = nearest_figure(json, row.metric);
    return judged;
  }
  judged.difference = *judged.ours / row.value - 1;
  if (row.tolerance > 0) {
    const bool inside = std::abs(*judged.ours - row.value) <= row.tolerance * std::abs(row.value);
    const Verdict missed = row.known_miss.empty()           ? Verdict::kMiss
                           : row.excuses(judged.difference) ? Verdict::kKnownMiss
                                                            : Verdict::kWorse;
    judged.verdict = inside ? Verdict::kOk : missed;
  }
  return judged;
}

Json expectation_json(const JudgedExpectation& judged) {
  Json row = {{"metric", judged.row->metric}, {"expected", judged.row->value}};
  if (judged.ours) row["ours"] = *judged.ours;
  if (judged.ours) row["difference"] = judged.difference;
  if (judged.row->tolerance > 0) row["tolerance"] = judged.row->tolerance;
  row["verdict"] = to_string(judged.verdict);
  if (!judged.nearest.empty()) row["nearest"] = judged.nearest;
  row["source"] = judged.row->source;
  if (!judged.row->known_miss.empty()) row["known_miss"] = judged.row->known_miss;
  return row;
}

}  // namespace

std::vector<JudgedExpectation> judge_expectations(const Report& report) {
  const Json json = body(report);
  std::vector<JudgedExpectation> rows;
  for (const Expectation& row : report.scenario->expect) rows.push_back(judge(json, row));
  return rows;
}

std::string report_json(const Report& report) {
  Json json = body(report);
  if (!report.scenario->expect.empty()) {
    Json& rows = json["expect"] = Json::array();
    for (const JudgedExpectation& judged : judge_expectations(report))
      rows.push_back(expectation_json(judged));
  }
  Json& provenance = json["provenance"] = Json::object();
  for (const auto& [name, text] : report.facts.provenance) provenance[name] = text;
  if (report.advice) json["explain"] = advice_json(*report.advice);
  if (!report.facts.collectives.empty()) json["collectives"] = collectives_json(report.facts.collectives);
  if (const auto& measured = report.facts.measured)
    json["measured"] = {{"device", measured->device},
                        {"ops", measured->ops},
                        {"ops_from_journal", measured->from_journal},
                        {"wall_s", measured->seconds},
                        {"once_s", measured->once}};
  json["uncertainty"] = Json::parse(uncertainty_json(report));
  json["ops"] = report.metrics.spans;  // that were simulated or executed, each rank class once
  json["dropped_spans"] = report.facts.dropped_spans;
  json["wall_s"] = report.facts.wall_s;
  json["cpu_s"] = report.facts.cpu_s;
  json["max_rss_bytes"] = report.facts.max_rss_bytes;
  return json.dump(2) + "\n";
}

std::string unfit_json(const Scenario& scenario, const MemoryReport& memory) {
  const Json json = {{"scenario", scenario.name},
                     {"kind", to_string(scenario.kind)},
                     {"seed", scenario.seed},
                     {"memory", memory_json(memory)}};
  return json.dump(2) + "\n";
}

std::optional<double> report_value(const std::string& json, const std::string& path) {
  return value_at(Json::parse(json), path);
}

std::vector<std::string> report_names(const std::string& json) {
  std::vector<std::string> names;
  add_names(Json::parse(json), "", names);
  return names;
}

}  // namespace moebius
