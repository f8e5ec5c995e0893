#include "workloads/scenario/framework_settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {
namespace {

constexpr const char* kFramework = "/plan/framework";

}  // namespace

// An empty plan has the defaults of the keys themselves.
std::vector<Setting> framework_settings(const Document& document, const Model& model) {
  const std::vector<Setting> without = read_plan(parse_document("{}", "<plan>"), model).settings;
  std::vector<Setting> found;
  for (const Setting& setting : read_plan(document, model).settings) {
    if (setting.given || setting.pointer == kFramework) continue;
    const bool same = std::any_of(without.begin(), without.end(), [&](const Setting& other) {
      return other.pointer == setting.pointer && other.value == setting.value;
    });
    if (!same) found.push_back(setting);
  }
  return found;
}

std::vector<Setting> framework_settings(std::string_view framework) {
  Model model;
  model.experts.routed = 2;
  model.biases = Biases::kQkv;
  const std::string plan =
      fmt::format(R"({{"plan": {{"framework": "{}", "cp": 2, "ep": {{"degree": 2, "capacity": 1}},
                                "tp": {{"attention": 2, "sequence_parallel": true}},
                                "recompute": {{"policy": "full"}},
                                "precision": {{"gemm": "fp8"}}}}}})",
                  framework);
  return framework_settings(parse_document(plan, "<framework>"), model);
}

std::optional<Algorithm> framework_exchange(Document document, const Model& model) {
  if (model.experts.routed == 0) return {};
  set_at_pointer(document, "/plan/ep/degree", "2");
  const std::vector<Setting> settings = framework_settings(document, model);
  const bool says = std::any_of(settings.begin(), settings.end(), [](const Setting& setting) {
    return setting.pointer == "/plan/ep/dispatch";
  });
  if (!says) return {};
  return read_plan(document, model).plan.exchange;
}

Document without_framework(Document document, const Model& model) {
  const std::vector<Setting> settings = framework_settings(document, model);
  if (settings.empty()) return document;
  set_at_pointer(document, kFramework, "\"none\"");
  for (const Setting& setting : settings) set_at_pointer(document, setting.pointer, setting.value);
  return document;
}

}  // namespace moebius
