// Study files of a small collective, and rows of results.
#pragma once

#include <string>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"
#include "workloads/study/results_file.h"
#include "workloads/study/study.h"

namespace moebius::test {

inline constexpr const char* kBase = R"({"moebius": 1, "kind": "collective", "name": "base", "seed": 7,
  "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
              "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}},
  "workload": {"operation": "all-reduce", "bytes": "1 MB", "ranks": 8}})";

class Files {
 public:
  Files() { scratch_.write("base.json", kBase); }
  Study study(const std::string& keys) const {
    return load_study(scratch_.write("s.json",
                                     R"({"moebius": 1, "kind": "study", "name": "s", "base": "base.json",
      "columns": ["time"], )" + keys + "}"));
  }
  std::string refusal(const std::string& keys) const {
    try {
      study(keys);
    } catch (const Error& error) {
      CHECK(error.kind() == Error::Kind::kInput);
      return std::string(error.what()).substr(scratch_.path("s.json").size() + 1);
    }
    return "";
  }
  std::string path(const std::string& name) const { return scratch_.path(name); }

 private:
  Scratch scratch_;
};

inline StudyRow row(std::int64_t point, const std::string& key) {
  return {point, key, 1, "{}"};
}

}  // namespace moebius::test
