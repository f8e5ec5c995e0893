// Through the binary, as a user sees it: equal runs leave equal files.
#include <catch2/catch.hpp>

#include <regex>
#include <string>

#include "tests/process.h"
#include "tests/scenario_file.h"

namespace {

using namespace moebius;

void run_into(const test::Scratch& scratch, const std::string& name, const std::string& scenario,
              const std::string& options = "") {
  const auto run = test::run_moebius("run " + test::scenario_file(scenario) + " --out " + scratch.path(name) +
                                     " " + options);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
}

// What may differ: the time and memory of the process itself.
std::string without_costs(const std::string& json) {
  return std::regex_replace(json, std::regex(R"re("(wall_s|cpu_s|max_rss_bytes)": [-+0-9.e]+)re"),
                            "\"$1\": 0");
}

}  // namespace

TEST_CASE("the same scenario twice gives the same timeline and report, to the byte") {
  for (const std::string scenario :
       {"study/deepseek-v3-train-2048-h800.json", "smoke/moe-64-h800.json", "smoke/allreduce-1024.json"}) {
    const test::Scratch scratch;
    run_into(scratch, "a", scenario);
    run_into(scratch, "b", scenario);
    INFO(scenario);
    CHECK(test::text_of(scratch.path("a/timeline.mtl")) == test::text_of(scratch.path("b/timeline.mtl")));
    CHECK(without_costs(test::text_of(scratch.path("a/report.json"))) ==
          without_costs(test::text_of(scratch.path("b/report.json"))));
  }
}

TEST_CASE("another seed of skewed experts gives another schedule") {
  const test::Scratch scratch;
  const std::string skewed = "--set '/workload/experts/popularity={\"zipf\": 0.8}'";
  run_into(scratch, "a", "smoke/moe-32-h800.json", skewed);
  run_into(scratch, "b", "smoke/moe-32-h800.json", skewed + " --seed 2");
  CHECK(test::text_of(scratch.path("a/timeline.mtl")) != test::text_of(scratch.path("b/timeline.mtl")));
}

TEST_CASE("SimGrid and the plain loop leave the same timeline, to the byte") {
  for (const std::string detail : {"fluid", "alpha-beta"}) {
    for (const std::string scenario : {"study/deepseek-v3-train-2048-h800.json", "smoke/moe-32-h800.json"}) {
      const test::Scratch scratch;
      run_into(scratch, "plain", scenario, "--driver plain --detail " + detail);
      const auto simgrid =
          test::run_moebius("run " + test::scenario_file(scenario) + " --driver simgrid --detail " + detail +
                            " --out " + scratch.path("simgrid"));
      if (simgrid.exit_code == 1 && simgrid.err.find("this build has no SimGrid") != std::string::npos) {
        WARN("skipped: this build has no SimGrid");
        return;
      }
      REQUIRE(simgrid.exit_code == 0);
      INFO(scenario << ", " << detail);
      CHECK(test::text_of(scratch.path("plain/timeline.mtl")) ==
            test::text_of(scratch.path("simgrid/timeline.mtl")));
    }
  }
}
