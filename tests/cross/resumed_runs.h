// A run that stops halfway and goes on beside one that does not stop, on any executor.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "real/host/host_run.h"
#include "tests/process.h"
#include "workloads/perform/perform.h"

namespace moebius::test {

// With a dump of activations into that folder, where it is named.
inline StartExecutor on_host(const std::string& dump = "") {
  return [dump](const Job& job, const Layout& layout, Recorder& recorder) {
    return start_host(job, layout, recorder, {dump});
  };
}

struct TrainedRun {
  std::vector<double> losses;
  std::string interrupted;
};

// The smoke scenario that learns, changed.
inline TrainedRun train_small(const StartExecutor& start, const std::vector<std::string>& sets) {
  const Library library("");
  Changes changes;
  changes.sets = sets;
  Job job = read_job(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/train-small.json", changes, library);
  const Outcome outcome = perform(job, start, {});
  return {outcome.report.facts.losses, outcome.interrupted};
}

inline std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Names and bytes of a directory's files.
inline std::map<std::string, std::string> files_of(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files[entry.path().filename().string()] = text_of(entry.path());
  return files;
}

// Three steps and, from their checkpoint, three more, beside six at once.
struct SixSteps {
  TrainedRun whole, first, second;
  std::map<std::string, std::string> whole_files, resumed_files;
};

inline SixSteps six_steps(const StartExecutor& start, const std::vector<std::string>& plan) {
  const Scratch scratch;
  const std::string whole = scratch.path("whole"), half = scratch.path("half"), full = scratch.path("full");
  SixSteps result;
  result.whole =
      train_small(start, plan + std::vector<std::string>{"/workload/steps=6", "/plan/save=" + whole});
  result.first =
      train_small(start, plan + std::vector<std::string>{"/workload/steps=3", "/plan/save=" + half});
  result.second =
      train_small(start, plan + std::vector<std::string>{"/workload/steps=6", "/plan/save=" + full,
                                                         "/plan/weights=" + half, "/plan/resume=true"});
  result.whole_files = files_of(whole);
  result.resumed_files = files_of(full);
  return result;
}

}  // namespace moebius::test
