#include "workloads/scenario/scenario.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hw/json_text.h"
#include "workloads/option_checks.h"
#include "workloads/scenario/known_figures.h"
#include "workloads/scenario/new_names.h"
#include "workloads/scenario/operations_keys.h"
#include "workloads/scenario/scenario_parts.h"

namespace moebius {

namespace {

constexpr std::array kScenarioKinds{
    Named<ScenarioKind>{"training", ScenarioKind::kTraining, "steps of pre-training"},
    Named<ScenarioKind>{"collective", ScenarioKind::kCollective, "one collective operation on one fabric"},
    Named<ScenarioKind>{"serving", ScenarioKind::kServing,
                        "requests answered by a model: prefill and decode"},
    Named<ScenarioKind>{"kv-replay", ScenarioKind::kKvReplay, "hits of requests in one cache of blocks"},
    Named<ScenarioKind>{"cluster", ScenarioKind::kCluster,
                        "jobs of a cluster over weeks: faults, recovery, power"},
};

constexpr std::array kDetails{
    Named<Detail>{"ops", Detail::kOps, "every op"},
    Named<Detail>{"steps", Detail::kSteps, "one row per submission"},
    Named<Detail>{"none", Detail::kNone, "nothing"},
};

struct Catalogs {
  const Catalog* hardware = nullptr;
  const ModelCatalog* models = nullptr;
};

// What every kind has. The kind itself was read before, to know which keys follow.
void read_head(Section& top, Scenario& scenario) {
  top.text("$schema", "", "where an editor finds this schema; not read");
  top.text("extends", "",
           "a scenario file that this one is laid over, object by object; relative to this file");
  if (top.given("extends"))
    top.place_of("extends").fail("expected a whole scenario: only a file extends one");
  top.one_of("moebius", {1}, std::nullopt, "version of the file format");
  top.text("kind", std::string(to_string(scenario.kind)), "what the scenario describes");
  scenario.name = top.text("name", std::nullopt, "one line for people");
  require_one_line(scenario.name, top.place_of("name"));
  constexpr double kMost = static_cast<double>(kLargestSeed);
  scenario.seed =
      static_cast<std::uint64_t>(top.integer("seed", {0, kMost}, 1, "of everything that is drawn at random"));
}

void read_model(Section& top, Scenario& scenario, const ModelCatalog* models) {
  const DescriptionPtr form = description_of(
      "", "a name of `moebius list models`, {\"hf_config\": PATH, changes} or {\"base\": NAME, changes}");
  set_keyword(form->keywords, "type", array_value({text_value("string"), text_value("object")}));
  if (const Value* value = top.value("model", true, form)) {
    scenario.model = models->model(*value, top.place_of("model"));
    if (!scenario.model.unsupported.empty()) {
      top.place_of("model").fail("model " + scenario.model.id + " cannot run: " + scenario.model.unsupported);
    }
  }
}

// The keys of one kind, in the order of the file.
void read_keys(Section& top, Scenario& scenario, Catalogs catalogs) {
  read_head(top, scenario);
  switch (scenario.kind) {
    case ScenarioKind::kTraining:
      read_model(top, scenario, catalogs.models);
      read_cluster(top.object("cluster", true, "the machines"), scenario, catalogs.hardware);
      read_training_plan(top.object("plan", false, "how a step is spread over the ranks"), scenario);
      read_training_workload(top.object("workload", true, "what is trained on"), scenario);
      break;
    case ScenarioKind::kCollective:
      read_cluster(top.object("cluster", true, "the machines"), scenario, catalogs.hardware);
      read_collective_workload(top.object("workload", true, "the operation"), scenario);
      break;
    case ScenarioKind::kServing:
      read_model(top, scenario, catalogs.models);
      read_cluster(top.object("cluster", true, "the machines"), scenario, catalogs.hardware);
      read_serving_plan(top.object("plan", false, "how the model is spread over the ranks"), scenario,
                        catalogs.hardware, catalogs.models);
      read_serving_workload(top.object("workload", true, "what is asked of it"), scenario);
      read_classes(top, scenario);
      break;
    case ScenarioKind::kKvReplay:
      read_replay(top, scenario);
      scenario.expect = read_expectations(top);
      return top.finish();
    case ScenarioKind::kCluster:
      read_cluster(top.object("cluster", true, "the machines"), scenario, catalogs.hardware);
      read_operations(top, scenario, catalogs.models);
      scenario.expect = read_expectations(top);
      return top.finish();
  }
  read_faults(top, scenario, catalogs.hardware == nullptr);
  scenario.expect = read_expectations(top);
  scenario.timeline = read_timeline(top.object("timeline", false, "what the timeline keeps"),
                                    scenario.kind == ScenarioKind::kServing);
  top.finish();
}

ScenarioKind read_kind(const Document& document) {
  std::vector<Setting> unused;
  Section head(Reader(document), &unused);
  return head.choice<ScenarioKind>("kind", kScenarioKinds, std::nullopt, "");
}

}  // namespace

int Scenario::ranks() const {
  switch (kind) {
    case ScenarioKind::kTraining:
      return plan.ranks();
    case ScenarioKind::kCollective:
      return collective.ranks;
    case ScenarioKind::kServing:
      return serving.ranks();
    case ScenarioKind::kKvReplay:
    case ScenarioKind::kCluster:
      return 0;
  }
  return 0;
}

std::string_view to_string(ScenarioKind kind) {
  return kScenarioKinds[static_cast<std::size_t>(kind)].name;
}

std::span<const Named<ScenarioKind>> scenario_kinds() {
  return kScenarioKinds;
}

DescriptionPtr describe_scenario(ScenarioKind kind) {
  const DescriptionPtr description =
      description_of("object", kScenarioKinds[static_cast<std::size_t>(kind)].help);
  Section top(description);
  Scenario placeholder;
  placeholder.kind = kind;
  read_keys(top, placeholder, {});
  // The kind tells the descriptions of one schema apart.
  for (auto& [key, form] : description->properties) {
    if (key == "kind") {
      form = description_of("", "what the scenario describes");
      set_keyword(form->keywords, "const", text_value(to_string(kind)));
    }
  }
  description->required.emplace_back("kind");
  return description;
}

bool Expectation::excuses(double difference) const {
  constexpr double kSlack = 0.005;
  return !known_difference || std::abs(difference) <= std::abs(*known_difference) + kSlack;
}

std::vector<Expectation> read_expectations(Section& top) {
  std::vector<Expectation> rows;
  for (Section& row : top.objects("expect", false, "published or measured figures, shown beside ours")) {
    Expectation expectation;
    expectation.metric = row.text("metric", std::nullopt, "dotted path into the report's JSON");
    if (row.given("metric")) require_known_figure(expectation.metric, row.place_of("metric"));
    expectation.value = row.number("value", {}, std::nullopt, "the figure, in SI units");
    if (expectation.value == 0)
      row.place_of("value").fail("expected a figure other than 0: differences are relative");
    expectation.tolerance = row.number("tolerance", {0, 10}, 0, "relative; 0: shown, not judged");
    expectation.source = row.text("source", std::nullopt, "where the figure comes from");
    expectation.known_miss = row.text(
        "known_miss", "",
        "why a miss is expected: it stays visible and fails only when it is worse than known_difference; "
        "without that, never");
    if (row.given("known_difference")) expectation.known_difference = 0;
    const double known = row.number("known_difference", {-1, 1e6}, 0,
                                    "of a known miss: ours over the figure less one, when it was recorded");
    if (expectation.known_difference) expectation.known_difference = known;
    if (expectation.known_difference && expectation.known_miss.empty())
      row.place_of("known_difference").fail("expected a reason in `known_miss`, found none");
    row.finish();
    rows.push_back(std::move(expectation));
  }
  return rows;
}

RecorderOptions read_timeline(Section section, bool serving) {
  RecorderOptions options;
  options.detail = section.choice<Detail>(
      "detail", kDetails, serving ? Detail::kSteps : Detail::kOps,
      serving ? "how much is kept; ops of a service that carries them all out alone (/plan/steps)"
              : "how much is kept");
  options.window = section.time("window", kForever, "spans and samples that start later are not kept");
  options.max_bytes =
      section.bytes("max_bytes", options.max_bytes,
                    "of the kept spans and samples; the tables of the ops that they name come on top");
  options.counters = section.time(
      "counters", Time{},
      serving ? "how often pools are sampled, or the network's wires where every op is carried out; 0 us: "
                "pools at most 240 times, wires never"
              : "how often the network's wires are sampled; 0 us: never");
  section.finish();
  return options;
}

Scenario read_scenario(const Document& document, const Catalog& catalog, const ModelCatalog& models) {
  Scenario scenario;
  scenario.file = document.file;
  scenario.kind = read_kind(document);
  Section top(Reader(document), &scenario.settings);
  read_keys(top, scenario, {&catalog, &models});
  // From here every key is known and of its type; the relations between keys remain.
  switch (scenario.kind) {
    case ScenarioKind::kTraining:
      check_training(scenario, document);
      break;
    case ScenarioKind::kCollective:
      check_collective(scenario, document);
      break;
    case ScenarioKind::kServing:
      check_serving(scenario, document);
      break;
    case ScenarioKind::kKvReplay:
      break;
    case ScenarioKind::kCluster:
      check_operations(scenario, document);
      break;
  }
  return scenario;
}

}  // namespace moebius
