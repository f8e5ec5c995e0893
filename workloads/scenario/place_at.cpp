#include <string>

#include <fmt/format.h>

#include "hw/document_step.h"
#include "workloads/scenario/framework_settings.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/training/frameworks.h"

namespace moebius {
namespace {

// ", of framework ..." where it says what the document does not.
std::string of_framework(const Document& document, std::string_view pointer) {
  const Value* plan = document.root.find("plan");
  const Value* name =
      plan == nullptr || plan->kind != Value::Kind::kObject ? nullptr : plan->find("framework");
  if (name == nullptr || !pointer.starts_with("/plan/")) return "";
  for (const TrainingFramework& framework : training_frameworks()) {
    if (framework.name != name->text) continue;
    for (const Setting& setting : framework_settings(framework.name))
      if (setting.pointer == pointer) return fmt::format(", of framework \"{}\"", framework.name);
  }
  return "";
}

}  // namespace

Place place_at(const Document& document, std::string_view pointer) {
  const Value* value = &document.root;
  Place place{value->origin ? *value->origin : document.file, std::string(pointer), value->line};
  for (std::string_view rest = pointer; !rest.empty();) {
    rest.remove_prefix(1);
    const std::string_view key = rest.substr(0, rest.find('/'));
    value = step_into(*value, key);
    if (value == nullptr) {
      place.of = of_framework(document, pointer);
      break;
    }
    place.line = value->line;
    if (value->origin) place.file = *value->origin;
    rest.remove_prefix(key.size());
  }
  return place;
}

}  // namespace moebius
