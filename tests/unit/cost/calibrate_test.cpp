// `moebius calibrate` through the binary.
#include <catch2/catch.hpp>

#include <filesystem>

#include "tests/process.h"

using namespace moebius;

TEST_CASE("calibrate makes the shipped profile from the published tables, to the byte") {
  const std::string tables = std::string(MOEBIUS_SOURCE_DIR) + "/../shared/data";
  if (!std::filesystem::exists(tables + "/deepgemm.csv")) {
    WARN("skipped: no tables of measured kernels beside the project");
    return;
  }
  const test::Scratch scratch;
  const auto run = test::run_moebius("calibrate --from " + tables + " --accelerator h800-sxm --out " +
                                     scratch.path("p.json"));
  CHECK(run.exit_code == 0);
  CHECK(test::text_of(scratch.path("p.json")) ==
        test::text_of(std::string(MOEBIUS_SOURCE_DIR) + "/hw/profiles/h800-sxm.json"));
}

TEST_CASE("calibrate refuses a directory without tables of that chip, and writes nothing") {
  const test::Scratch scratch;
  const auto run = test::run_moebius("calibrate --from " + scratch.path(".") + " --accelerator h800 --out " +
                                     scratch.path("p.json"));
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("no table of measured kernels has rows of h800-sxm") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(scratch.path("p.json")));
}
