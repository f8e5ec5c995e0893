// What ends a command with a sentence though its scenario can be read.
#include <string>

#include "tests/process.h"

#include "tests/catch.h"

namespace moebius {
namespace {

using Catch::Matchers::Contains;

test::Finished of_smoke(const std::string& command, const std::string& arguments) {
  return test::run_moebius(command + " " + std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/" + arguments);
}

}  // namespace

TEST_CASE("a run ends with an error when it does not have a figure that is expected") {
  const std::string expect =
      R"( --set '/expect=[{"metric": "METRIC", "value": 1, "tolerance": 0.1, "source": "none"}]')";
  const auto run = [&](const std::string& metric) {
    std::string with = expect;
    with.replace(with.find("METRIC"), 6, metric);
    return of_smoke("run", "serve-small.json" + with);
  };
  const test::Finished absent = run("step_time_s");
  CHECK(absent.exit_code == 1);
  CHECK_THAT(absent.err, Contains("\"expect\" names \"step_time_s\", which this run does not report"));
  CHECK(run("output_tokens_per_s").exit_code == 0);  // missed by far, which the report says
}

TEST_CASE("a service whose weights leave no room is not called valid") {
  CHECK(of_smoke("check", "serve-apart.json").exit_code == 0);
  const test::Finished full = of_smoke("check", "serve-apart.json --set /model=deepseek-v3");
  CHECK(full.exit_code == 1);
  CHECK_THAT(full.err, Contains("leave no room for a page of the cache"));
}

}  // namespace moebius
