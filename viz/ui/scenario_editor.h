// A scenario's inputs to change, and the run that shows what the change does: `moebius run` in a process of
// its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viz/data/child_run.h"

namespace moebius::viz {

struct ScenarioInput {
  std::string pointer;  // "/plan/ep/degree"
  std::string was, is;  // as JSON, strings without their quotes
  bool changed() const { return was != is; }
};

struct ScenarioEditor {
  ScenarioEditor() = default;
  ~ScenarioEditor();  // with the directories of its runs
  ScenarioEditor(const ScenarioEditor&) = delete;
  ScenarioEditor& operator=(const ScenarioEditor&) = delete;

  // The leaves of the file, with what it extends; what is wrong with it goes to `trouble`.
  void load(const std::string& path);
  // Runs the scenario with the changes; `number` tells its directory from those before.
  void start();

  std::string file, loaded, trouble;
  std::string search;
  std::vector<ScenarioInput> inputs;
  ChildRun child;
  std::string directory;  // of the latest results
  int runs_made = 0;
  bool shown = false;  // the finished run has been opened beside the old one
};

}  // namespace moebius::viz
