#include "workloads/scenario/framework_settings.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {
namespace {

constexpr const char* kFramework = "/plan/framework";
constexpr const char* kSlicing = "/plan/pp/slicing";

struct ReadPlan {
  std::vector<Setting> settings;
  Slicing slicing = Slicing::kBalanced;  // of a name or of layers: no setting where it is not given
};

ReadPlan read(const Document& document, const Model& model) {
  ReadPlan found;
  Section top(Reader(document), &found.settings);
  Scenario scenario;
  scenario.model = model;
  read_training_plan(top.object("plan", false, ""), scenario);
  found.slicing = scenario.plan.slicing;
  return found;
}

// What is not given has the defaults of an empty plan without a framework.
std::vector<Setting> differences(const ReadPlan& with, const ReadPlan& without) {
  std::vector<Setting> found;
  for (const Setting& setting : with.settings) {
    if (setting.given || setting.pointer == kFramework) continue;
    const auto same = std::find_if(without.settings.begin(), without.settings.end(),
                                   [&](const Setting& other) { return other.pointer == setting.pointer; });
    if (same == without.settings.end() || same->value != setting.value) found.push_back(setting);
  }
  const bool sliced = std::any_of(with.settings.begin(), with.settings.end(),
                                  [](const Setting& setting) { return setting.pointer == kSlicing; });
  if (!sliced && with.slicing != without.slicing)
    found.push_back({kSlicing, fmt::format("\"{}\"", slicing_name(with.slicing)), false});
  return found;
}

}  // namespace

std::vector<Setting> framework_settings(const Document& document, const Model& model) {
  return differences(read(document, model), read(parse_document("{}", "<plan>"), model));
}

Document without_framework(Document document, const Model& model) {
  const std::vector<Setting> settings = framework_settings(document, model);
  if (settings.empty()) return document;
  set_at_pointer(document, kFramework, "\"none\"");
  for (const Setting& setting : settings) set_at_pointer(document, setting.pointer, setting.value);
  return document;
}

}  // namespace moebius
