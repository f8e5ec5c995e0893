#include "workloads/scenario/service_class_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/scenario/new_names.h"

namespace moebius {
namespace {

constexpr std::array kAdmissionPolicies{
    Named<AdmissionPolicy>{"none", AdmissionPolicy::kNone, "all requests are taken"},
    Named<AdmissionPolicy>{"queue-limit", AdmissionPolicy::kQueueLimit,
                           "not those that find `most_waiting` requests waiting on their replica"},
    Named<AdmissionPolicy>{"predicted", AdmissionPolicy::kPredicted,
                           "not those that are forecast to miss what their class is promised"},
};

std::vector<std::string> read_pool_names(Section& row) {
  const DescriptionPtr form =
      description_of("array", "names of pools of the plan that may serve it; left out: all");
  form->items = description_of("string", "");
  std::vector<std::string> names;
  const Value* value = row.value("pools", false, form);
  if (value == nullptr) return names;
  const bool array = value->kind == Value::Kind::kArray;
  for (std::size_t i = 0; array && i < value->items.size(); ++i) {
    if (value->items[i].kind == Value::Kind::kString) names.push_back(value->items[i].text);
  }
  if (!array || names.size() != value->items.size() || names.empty())
    row.place_of("pools").fail("expected an array of names of pools");
  return names;
}

ClassKeys read_class(Section& row) {
  ClassKeys keys;
  RequestClass& of = keys.of;
  of.name = row.text("class", std::nullopt, "whose");
  require_one_line(of.name, row.place_of("class"));
  of.goal.ttft = row.time("ttft", Time{}, "arrival to first token, at most; left out: not promised");
  of.goal.tpot = row.time("tpot", Time{}, "time per further token, at most; left out: not promised");
  for (const auto& [key, promised] : {std::pair("ttft", of.goal.ttft), std::pair("tpot", of.goal.tpot)})
    if (row.given(key) && promised.ns == 0)
      row.place_of(key).fail("expected more than 0 s: without the key nothing is promised");
  of.share = row.number("share", {0, 1e9}, 1, "of the requests, over the shares of all classes");
  of.longest_input = row.integer("longest_input", {0, kMostTokens}, 0,
                                 "only requests whose prompts have so many tokens at most; 0: any");
  of.priority = static_cast<std::int32_t>(
      row.integer("priority", {-1000, 1000}, 0, "prompts of a higher one are computed first"));
  keys.pools = read_pool_names(row);
  row.finish();
  return keys;
}

std::uint64_t pools_of(const Scenario& scenario, const std::vector<std::string>& names, const Place& place) {
  if (names.empty()) return ~std::uint64_t{0};
  std::vector<std::string> known;
  for (const ServicePhase& phase : scenario.service.phases)
    known.push_back(scenario.cluster->pools[phase.pool].name);
  std::uint64_t bits = 0;
  for (const std::string& name : names) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end())
      place.fail(
          fmt::format("expected names of the plan's pools, found \"{}\"{}", name, suggestion(name, known)));
    bits |= std::uint64_t{1} << (at - known.begin());
  }
  return bits;
}

// A prompt needs a pool that computes it and one that goes on with it, unless one phase alone is served.
void require_path(const Scenario& scenario, const RequestClass& of, const Place& place) {
  if (scenario.service.does != PoolRole::kBoth) return;
  bool prompts = false, tokens = false, both = false;
  for (std::size_t i = 0; i < scenario.service.phases.size(); ++i) {
    if ((of.pools >> i & 1) == 0) continue;
    const PoolRole role = scenario.service.phases[i].role;
    both = both || role == PoolRole::kBoth;
    prompts = prompts || role == PoolRole::kPrefill;
    tokens = tokens || role == PoolRole::kDecode;
  }
  if (!both && !(prompts && tokens))
    place.fail(fmt::format("the pools of class \"{}\" do not both compute prompts and decode", of.name));
}

}  // namespace

AdmissionRules read_admission(Section& plan) {
  Section section = plan.object("admission", false, "which requests are turned away when they come");
  AdmissionRules rules;
  rules.policy =
      section.choice<AdmissionPolicy>("policy", kAdmissionPolicies, AdmissionPolicy::kNone, "by what");
  const bool limited = rules.policy == AdmissionPolicy::kQueueLimit;
  rules.most_waiting = section.integer(
      "most_waiting", {0, 1 << 24}, 64,
      "policy queue-limit: requests of a replica without pages yet, those on their way to it too");
  section.allow_only("most_waiting", limited, "policy \"queue-limit\"");
  section.finish();
  return rules;
}

void read_classes(Section& top, Scenario& scenario) {
  for (Section& row : top.objects("sla", false, "what requests of a class are promised"))
    scenario.service.class_keys.push_back(read_class(row));
  const std::vector<ClassKeys>& classes = scenario.service.class_keys;
  const auto promised = std::find_if(classes.begin(), classes.end(),
                                     [](const ClassKeys& keys) { return keys.of.goal.given(); });
  if (promised != classes.end()) scenario.goal = promised->of.goal;
}

void set_classes(Scenario& scenario, const Document& document) {
  ServicePlan& service = scenario.service;
  service.classes.clear();
  bool any = service.class_keys.empty();
  for (std::size_t i = 0; i < service.class_keys.size(); ++i) {
    const ClassKeys& keys = service.class_keys[i];
    const Place place = place_at(document, fmt::format("/sla/{}", i));
    for (const RequestClass& before : service.classes)
      if (before.name == keys.of.name) place.fail(fmt::format("class \"{}\" stands twice", before.name));
    service.classes.push_back(keys.of);
    service.classes.back().pools = pools_of(scenario, keys.pools, place);
    require_path(scenario, service.classes.back(), place);
    any = any || (keys.of.longest_input == 0 && keys.of.share > 0);
  }
  if (!any)
    place_at(document, "/sla")
        .fail("prompts of any length need a class: expected one with a share and without \"longest_input\"");
  if (service.classes.empty()) service.classes = {{}};
}

}  // namespace moebius
