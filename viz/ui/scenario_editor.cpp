#include "viz/ui/scenario_editor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "hw/error.h"
#include "workloads/scenario/extended_document.h"

namespace moebius::viz {
namespace {

void collect(const Value& value, const std::string& pointer, std::vector<ScenarioInput>& inputs) {
  const bool object = value.kind == Value::Kind::kObject, array = value.kind == Value::Kind::kArray;
  for (std::size_t i = 0; i < value.items.size() && (object || array); ++i)
    collect(value.items[i], pointer + "/" + (object ? value.keys[i] : std::to_string(i)), inputs);
  if (object || array || pointer == "/$schema" || pointer == "/moebius" || pointer == "/kind") return;
  const std::string text = value.kind == Value::Kind::kString ? value.text : to_json(value);
  inputs.push_back({pointer, text, text});
}

std::filesystem::path own_directory() {
  return std::filesystem::temp_directory_path() / fmt::format("moebius-view-{}", getpid());
}

}  // namespace

ScenarioEditor::~ScenarioEditor() {
  child.cancel();
  std::error_code ignored;  // nothing can be done about a temporary directory that does not go away
  if (runs_made > 0) std::filesystem::remove_all(own_directory(), ignored);
}

void ScenarioEditor::load(const std::string& path) {
  file = loaded = path;
  trouble.clear();
  inputs.clear();
  try {
    collect(load_scenario(path).root, "", inputs);
  } catch (const Error& error) {
    trouble = error.what();
  }
}

void ScenarioEditor::start() {
  namespace fs = std::filesystem;
  trouble.clear();
  shown = false;
  directory = (own_directory() / std::to_string(++runs_made)).string();
  std::vector<std::string> command{fs::read_symlink("/proc/self/exe").string(), "run", loaded, "--out",
                                   directory};
  for (const ScenarioInput& input : inputs) {
    if (!input.changed()) continue;
    command.emplace_back("--set");
    command.push_back(input.pointer + "=" + input.is);
  }
  try {
    child.start(command);
  } catch (const Error& error) {
    trouble = error.what();
  }
}

}  // namespace moebius::viz
