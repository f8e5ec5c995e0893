#include "workloads/scenario/named_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNames{
    "/model/hf_config",     "/plan/decode/speculative/model/hf_config", "/plan/weights", "/plan/save",
    "/workload/trace/path", "/workload/experts/popularity/recorded",
};
constexpr std::string_view kSchema = "/$schema";

Value* find_at(Value& root, std::string_view pointer) {
  Value* value = &root;
  while (!pointer.empty() && value->kind == Value::Kind::kObject) {
    pointer.remove_prefix(1);
    const std::string_view key = pointer.substr(0, pointer.find('/'));
    const auto at = std::find(value->keys.begin(), value->keys.end(), key);
    if (at == value->keys.end()) return nullptr;
    value = &value->items[static_cast<std::size_t>(at - value->keys.begin())];
    pointer.remove_prefix(key.size());
  }
  return pointer.empty() && value->kind == Value::Kind::kString ? value : nullptr;
}

void name_from(const fs::path& directory, const Place& place, Value& value) {
  const fs::path named = value.text;
  if (named.empty() || named.is_absolute() || value.text.find("://") != std::string::npos) return;
  const fs::path from = place.line == 0 ? fs::path() : fs::path(place.file).parent_path();
  value.text = fs::absolute(from / named).lexically_normal().lexically_relative(directory).string();
}

}  // namespace

Document written_into(Document document, const std::string& directory) {
  const fs::path to = fs::absolute(directory.empty() ? "." : directory).lexically_normal();
  for (const std::string_view pointer : kNames)
    if (Value* value = find_at(document.root, pointer); value != nullptr && value->text != "random")
      name_from(to, place_at(document, pointer), *value);
  if (Value* schema = find_at(document.root, kSchema)) name_from(to, place_at(document, kSchema), *schema);
  return document;
}

}  // namespace moebius
