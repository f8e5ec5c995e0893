// What a report says of iterations that no graph was captured for.
#include <string>

#include "hw/document.h"
#include "tests/process.h"

#include "tests/catch.h"

namespace moebius {
namespace {

using Catch::Matchers::Contains;

// 16 users, who decode together but for the moments when prompts come.
std::string served(const std::string& more) {
  const test::Finished run = test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) +
                                               "/scenarios/smoke/serve-framework.json" + more);
  REQUIRE(run.exit_code == 0);
  return run.out;
}

double share_beyond(const Document& report) {
  return report.root.find("pools")->find("servers")->find("iterations_beyond_graphs")->number;
}

double tpot(const Document& report) {
  return report.root.find("tpot_s")->find("mean")->number;
}

constexpr const char* kEight = " --set /plan/scheduler/captured_most=8";

}  // namespace

TEST_CASE("a service that decodes more sequences than its graphs have takes its launches, and says so") {
  const Document whole = parse_document(served(" --json"), "report.json");
  const Document few = parse_document(served(std::string(kEight) + " --json"), "report.json");
  CHECK(share_beyond(whole) == 0);
  CHECK(share_beyond(few) > 0.5);
  CHECK(tpot(few) > 1.2 * tpot(whole));
  CHECK_THAT(served(kEight), Contains("of iterations decode what no graph was captured for"));
  CHECK_THAT(served(""), !Contains("no graph was captured"));
}

// As many as run are as many as need be.
TEST_CASE("graphs that go as far as sequences do are graphs without an end") {
  const auto figures = [](const char* most) {
    const Document report = parse_document(
        served(std::string(" --set /plan/scheduler/captured_most=") + most + " --json"), "report.json");
    return std::pair(tpot(report), report.root.find("ttft_s")->find("mean")->number);
  };
  CHECK(figures("16") == figures("0"));
}

}  // namespace moebius
