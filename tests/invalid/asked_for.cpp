// What a command line asks for: help, and files that are there.
#include <catch2/catch.hpp>

#include "tests/process.h"

using namespace moebius::test;

TEST_CASE("help is there by its own name, too") {
  CHECK(run_moebius("help").out == run_moebius("--help").out);
  CHECK(run_moebius("help run").out == run_moebius("run --help").out);
  CHECK(run_moebius("help run").exit_code == 0);
}

TEST_CASE("a trace that is not there is missed by check, too") {
  const std::string file = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/kv-replay.json";
  const Finished finished = run_moebius("check " + file + " --set /workload/trace/path=nowhere.jsonl");
  CHECK(finished.exit_code == 2);
  CHECK(finished.err.find("/workload/trace/path: expected a trace file, found none: nowhere.jsonl") !=
        std::string::npos);
}
