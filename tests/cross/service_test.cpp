// `moebius run` of a whole service.
#include <catch2/catch.hpp>

#include "tests/process.h"
#include "workloads/report/report.h"

namespace moebius {
namespace {

const std::string kScenarios = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/";
const std::string kApart = kScenarios + "smoke/serve-apart.json";

double figure(const std::string& json, const std::string& path) {
  INFO(path);
  const std::optional<double> value = report_value(json, path);
  REQUIRE(value.has_value());
  return *value;
}

std::string report_of(const std::string& arguments) {
  const auto run = test::run_moebius("run " + arguments + " --json");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return run.out;
}

}  // namespace

TEST_CASE("prefill and decode apart answer every request, and the report adds up") {
  const std::string json = report_of(kApart);
  CHECK(figure(json, "requests.completed") == 1000);
  CHECK(figure(json, "requests.rejected") == 0);
  const double e2e = 1000 * figure(json, "e2e_s.mean");
  CHECK(figure(json, "request_time_s.queue") + figure(json, "request_time_s.prefill") +
            figure(json, "request_time_s.handover") + figure(json, "request_time_s.decode") ==
        Approx(e2e));
  CHECK(figure(json, "transferred_bytes") > 0);
  CHECK(figure(json, "pools.prefill.prefix.reused_tokens") > 0);
  const std::string again = report_of(kApart);
  CHECK(json.substr(0, json.find("\"wall_s\"")) == again.substr(0, again.find("\"wall_s\"")));
}

// The batch as it ships carries out every op; between iterations that were timed it must take as long.
TEST_CASE("a service between timed iterations takes as long as one whose every op is carried out") {
  const std::string file = kScenarios + "study/deepseek-v3-serve-16-h200.json";
  const std::string plan = " --set /plan/scheduler/chunked=false";
  const std::string full = report_of(file + plan),
                    surface = report_of(file + plan + " --set /plan/steps=surface");
  for (const std::string metric : {"ttft_s.mean", "tpot_s.mean", "e2e_s.mean", "run_time_s"}) {
    INFO(metric);
    CHECK(figure(surface, metric) == Approx(figure(full, metric)).epsilon(0.03));
  }
}

TEST_CASE("a whole service has no schedule to dump") {
  const auto run = test::run_moebius("run " + kApart + " --dump /dev/null");
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("a whole service has no schedule to execute") != std::string::npos);
}

// The same keys, and what does not depend on the clock the same.
TEST_CASE("a service that is carried out reports what a simulated one does") {
  const std::string file = kScenarios + "smoke/serve-carried.json";
  const std::string simulated = report_of(file), executed = report_of(file + " --executor host");
  for (const std::string key : {"requests.submitted", "requests.completed", "transferred_bytes",
                                "pools.prefill.prefix.prompt_tokens"}) {
    INFO(key);
    CHECK(figure(executed, key) == figure(simulated, key));
  }
  for (const std::string key : {"ttft_s.p99", "tpot_s.p50", "itl_s.mean", "e2e_s.p90", "goodput_rps",
                                "pools.decode.iterations", "request_time_s.handover"}) {
    INFO(key);
    CHECK(figure(executed, key) > 0);
  }
}

TEST_CASE("what is simulated only is refused by the executor with the key that asks for it") {
  const std::string file = kScenarios + "smoke/serve-carried.json --executor host --set ";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"/plan/router=sla-aware", "/plan/router: a router that forecasts is simulated only"},
      {"/plan/expert_balance/policy=static", "/plan/expert_balance: placing experts is simulated only"}};
  for (const auto& [set, sentence] : cases) {
    INFO(set);
    const auto run = test::run_moebius("run " + file + set);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find(sentence) != std::string::npos);
  }
}

}  // namespace moebius
