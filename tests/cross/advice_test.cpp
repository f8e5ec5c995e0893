// What would help, against doing it.
#include "hw/document.h"
#include "tests/process.h"
#include "tests/scenario_file.h"

#include <catch2/catch.hpp>

using namespace moebius;

namespace {

Document explained(const std::string& options) {
  const test::Finished run =
      test::run_moebius("run " + test::scenario_file("smoke/moe-64-h800.json") + " --json " + options);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return parse_document(run.out, "report.json");
}

}  // namespace

TEST_CASE("what a switch would gain is what it gains") {
  const Document report = explained("--explain --set /plan/overlap/dispatch_combine=false");
  const Value& switches = *report.root.find("explain")->find("switches");
  const double step = report.root.find("step_time_s")->number;
  double best = 1;
  int ran = 0;
  for (const Value& row : switches.items) {
    if (row.find("gain") == nullptr) continue;
    CHECK(row.find("gain")->number <= best);  // best first
    best = row.find("gain")->number;
    ++ran;
    if (row.find("switch")->text != "dispatch and combine beside compute") continue;
    const double overlapped = explained("").root.find("step_time_s")->number;
    CHECK(row.find("step_time_s")->number == overlapped);
    CHECK(row.find("gain")->number == Approx(step / overlapped - 1));
    CHECK(overlapped < step);
  }
  CHECK(ran >= 3);
}

// Nothing is counted twice: what costs time is no more than the step, compute that is useful left aside.
TEST_CASE("causes are parts of the step") {
  const Document report = explained("--explain");
  double sum = 0;
  for (const Value& row : report.root.find("explain")->find("causes")->items)
    sum += row.find("seconds")->number;
  CHECK(sum > 0);
  CHECK(sum < report.root.find("step_time_s")->number);
}

// The step without the keys is the step with their kernels fused, and the shorter one.
TEST_CASE("kernels of older software are tried fused") {
  const Document report = explained(
      "--explain --set /plan/loss=separate --set /plan/norms=separate --set "
      "/plan/optimizer=separate");
  const double fused = explained("").root.find("step_time_s")->number;
  CHECK(fused < report.root.find("step_time_s")->number);
  int found = 0;
  for (const Value& row : report.root.find("explain")->find("switches")->items) {
    if (row.find("switch")->text != "fused kernels of attention, loss, norms, routing and update") continue;
    CHECK(row.find("step_time_s")->number == fused);
    ++found;
  }
  CHECK(found == 1);
}
