#include "workloads/scenario/named_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/file_bytes.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/schedule/hash.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSave = "/plan/save";
constexpr std::array<std::string_view, 7> kNames{
    "/model/hf_config",     "/plan/decode/speculative/model/hf_config", "/plan/weights", kSave,
    "/workload/trace/path", "/workload/experts/popularity/recorded",    "/workload/rl/reward_model/hf_config",
};
constexpr std::string_view kSchema = "/$schema";

template <class AnyValue>  // const or not
AnyValue* find_at(AnyValue& root, std::string_view pointer) {
  AnyValue* value = &root;
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

// From where it is named.
fs::path whole_path(const Document& document, std::string_view pointer, const std::string& text) {
  const Place place = place_at(document, pointer);
  const fs::path from = place.line == 0 ? fs::path() : fs::path(place.file).parent_path();
  return fs::absolute(from / text).lexically_normal();
}

// Studies ask for the same file a thousand times.
std::uint64_t hash_of_file(const fs::path& file) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::uintmax_t, fs::file_time_type>, std::uint64_t> known;
  const auto key = std::tuple(file.string(), fs::file_size(file), fs::last_write_time(file));
  const std::lock_guard lock(mutex);
  const auto at = known.find(key);
  if (at != known.end()) return at->second;
  const FileBytes bytes(file.string());
  return known[key] = Hash().add(std::string_view(bytes.data(), bytes.size())).value();
}

std::string files_mark(const Document& scenario) {
  std::string mark;
  for (const std::string_view pointer : kNames) {
    const Value* value = find_at(scenario.root, pointer);
    if (value == nullptr || pointer == kSave || value->text.empty() || value->text == "random") continue;
    const fs::path file = whole_path(scenario, pointer, value->text);
    std::error_code none;
    mark +=
        fs::is_regular_file(file, none) ? fmt::format(" {:016x}", hash_of_file(file)) : " " + file.string();
  }
  return mark;
}

// Of a cluster's jobs and of the shapes of its queues, by pointer and name.
std::vector<std::pair<std::string, std::string>> named_scenarios(const Value& root) {
  const auto in = [](const Value* value, std::string_view key) {
    return value != nullptr && value->kind == Value::Kind::kObject ? value->find(key) : nullptr;
  };
  std::vector<std::pair<std::string, std::string>> named;
  const auto add = [&](const Value* rows, std::string_view at) {
    if (rows == nullptr || rows->kind != Value::Kind::kArray) return;
    for (std::size_t i = 0; i < rows->items.size(); ++i)
      if (const Value* name = in(&rows->items[i], "scenario"); name != nullptr && !name->text.empty())
        named.emplace_back(fmt::format("{}/{}/scenario", at, i), name->text);
  };
  add(in(&root, "jobs"), "/jobs");
  add(in(in(&root, "queueing"), "shapes"), "/queueing/shapes");
  return named;
}

// With what it extends and the files that it names itself. Of what cannot be read, where it is. An extended
// file may change behind one that does not: nothing is remembered.
std::string scenario_mark(const fs::path& file) {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return " " + file.string();
  try {
    const Document named = load_scenario(file.string());
    return fmt::format(" {:016x}{}", Hash().add(to_json(named.root)).value(), files_mark(named));
  } catch (const Error&) {
    return " " + file.string();
  }
}

}  // namespace

std::string named_path(const Place& place, const std::string& path) {
  return place.line == 0 ? path : (fs::path(place.file).parent_path() / path).string();
}

std::string named_files_mark(const Document& scenario) {
  std::string mark = files_mark(scenario);
  for (const auto& [pointer, name] : named_scenarios(scenario.root))
    mark += scenario_mark(named_path(place_at(scenario, pointer), name));
  return mark;
}

Document written_into(Document document, const std::string& directory) {
  const fs::path to = fs::absolute(directory.empty() ? "." : directory).lexically_normal();
  for (const std::string_view pointer : kNames)
    if (Value* value = find_at(document.root, pointer); value != nullptr && value->text != "random")
      name_from(to, place_at(document, pointer), *value);
  if (Value* schema = find_at(document.root, kSchema)) name_from(to, place_at(document, kSchema), *schema);
  return document;
}

}  // namespace moebius
