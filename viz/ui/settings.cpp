#include "viz/ui/settings.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "hw/document.h"
#include "hw/error.h"
#include "workloads/report/run_directory.h"

namespace moebius::viz {
namespace {

constexpr std::size_t kMostRecent = 10;

Value text_value(const std::string& text) {
  Value value;
  value.kind = Value::Kind::kString;
  value.text = text;
  return value;
}

Value number_value(double number) {
  Value value;
  value.kind = Value::Kind::kNumber;
  value.number = number;
  return value;
}

Value integer_value(int number) {
  Value value = number_value(number);
  value.kind = Value::Kind::kInteger;
  value.integer = number;
  return value;
}

void add(Value& object, const char* key, Value value) {
  object.keys.emplace_back(key);
  object.items.push_back(std::move(value));
}

double number_of(const Value& root, const char* key, double otherwise, double least, double most) {
  const Value* value = root.find(key);
  const bool given =
      value != nullptr && (value->kind == Value::Kind::kNumber || value->kind == Value::Kind::kInteger);
  return given ? std::clamp(value->number, least, most) : otherwise;
}

}  // namespace

std::string settings_path() {
  const char *config = std::getenv("XDG_CONFIG_HOME"), *home = std::getenv("HOME");
  if (config != nullptr && *config != 0) return std::string(config) + "/moebius/viewer.json";
  if (home != nullptr && *home != 0) return std::string(home) + "/.config/moebius/viewer.json";
  return "";
}

Settings load_settings(const std::string& path) {
  Settings settings;
  try {
    const Value root = load_document(path).root;
    if (root.kind != Value::Kind::kObject) return settings;
    settings.dark = number_of(root, "dark", 1, 0, 1) != 0;
    settings.width = static_cast<int>(number_of(root, "width", settings.width, 320, 1 << 14));
    settings.height = static_cast<int>(number_of(root, "height", settings.height, 240, 1 << 14));
    settings.scale = static_cast<float>(number_of(root, "scale", 0, 0, 4));
    if (const Value* screen = root.find("screen")) settings.screen = screen->text;
    if (const Value* recent = root.find("recent"))
      for (const Value& run : recent->items)
        if (settings.recent.size() < kMostRecent) settings.recent.push_back(run.text);
  } catch (const Error&) {
    return {};
  }
  return settings;
}

void save_settings(const Settings& settings, const std::string& path) {
  if (path.empty()) return;
  Value root, recent;
  root.kind = Value::Kind::kObject;
  recent.kind = Value::Kind::kArray;
  for (const std::string& run : settings.recent) recent.items.push_back(text_value(run));
  add(root, "dark", integer_value(settings.dark ? 1 : 0));
  add(root, "width", integer_value(settings.width));
  add(root, "height", integer_value(settings.height));
  add(root, "scale", number_value(static_cast<double>(settings.scale)));
  add(root, "screen", text_value(settings.screen));
  add(root, "recent", recent);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  try {
    write_file(path, to_json(root) + "\n");
  } catch (const Error&) {
    return;
  }
}

void remember(Settings& settings, const std::string& run) {
  std::error_code error;
  const std::string whole = std::filesystem::absolute(run, error).string();
  std::erase(settings.recent, whole);
  settings.recent.insert(settings.recent.begin(), whole);
  if (settings.recent.size() > kMostRecent) settings.recent.resize(kMostRecent);
}

}  // namespace moebius::viz
