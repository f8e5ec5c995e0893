#include "workloads/listing/policy_listing.h"

#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/scenario/scenario_parts.h"

namespace moebius {

namespace {

struct PolicyKey {
  ScenarioKind kind;
  std::string_view pointer;
};

constexpr std::array kPolicies{
    PolicyKey{ScenarioKind::kTraining, "/plan/placement/order"},
    PolicyKey{ScenarioKind::kServing, "/plan/scheduler/batching"},
    PolicyKey{ScenarioKind::kServing, "/plan/scheduler/policy"},
    PolicyKey{ScenarioKind::kServing, "/plan/scheduler/preemption"},
    PolicyKey{ScenarioKind::kServing, "/plan/router"},
    PolicyKey{ScenarioKind::kServing, "/plan/admission/policy"},
    PolicyKey{ScenarioKind::kServing, "/plan/dp_balance"},
    PolicyKey{ScenarioKind::kServing, "/plan/expert_balance/policy"},
    PolicyKey{ScenarioKind::kServing, "/plan/cache/eviction"},
    PolicyKey{ScenarioKind::kServing, "/plan/cache/write"},
    PolicyKey{ScenarioKind::kServing, "/plan/cache/prefetch/policy"},
    PolicyKey{ScenarioKind::kServing, "/plan/cache/load"},
    PolicyKey{ScenarioKind::kCluster, "/operations/checkpoint/policy"},
    PolicyKey{ScenarioKind::kCluster, "/operations/failures/mix"},
};

const Description& described(const Description& root, std::string_view pointer) {
  const Description* at = &root;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view key = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(key.size());
    const Description* next = nullptr;
    for (const auto& [name, property] : at->properties) {
      if (name == key) next = property.get();
    }
    CHECK(next != nullptr, std::string(key));
    at = next;
  }
  return *at;
}

// A key's description is what it is for, then "; name: what it does" for each name.
std::string key_text(const PolicyKey& key, const Description& description) {
  const std::string& help = description.keywords.find("description")->text;
  std::vector<std::size_t> begins;
  std::vector<std::string> names;
  for (const Value& name : description.keywords.find("enum")->items) {
    names.push_back(name.text);
    const std::size_t from = begins.empty() ? 0 : begins.back();
    const std::size_t found = help.find(fmt::format("; {}:", name.text), from);
    begins.push_back(found == std::string::npos ? help.size() : found);
  }
  begins.push_back(help.size());
  std::string text =
      fmt::format("{} {}: {}\n", to_string(key.kind), key.pointer, help.substr(0, begins.front()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t first = std::min(help.size(), begins[i] + names[i].size() + 4);
    text += fmt::format("  {:<16} {}\n", names[i],
                        first < begins[i + 1] ? help.substr(first, begins[i + 1] - first) : "");
  }
  return text;
}

}  // namespace

std::string policies_text() {
  std::string text;
  for (const PolicyKey& key : kPolicies) {
    const DescriptionPtr root = describe_scenario(key.kind);
    if (!text.empty()) text += '\n';
    text += key_text(key, described(*root, key.pointer));
  }
  return text;
}

}  // namespace moebius
