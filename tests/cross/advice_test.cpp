// What would help, against doing it.
#include "hw/document.h"
#include "tests/process.h"
#include "tests/scenario_file.h"

#include <catch2/catch.hpp>

using namespace moebius;

namespace {

Document explained(const std::string& options, const std::string& file = "smoke/moe-64-h800.json") {
  const test::Finished run = test::run_moebius("run " + test::scenario_file(file) + " --json " + options);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return parse_document(run.out, "report.json");
}

// The rows whose name begins so, each refused or with its gain.
std::vector<const Value*> switches_of(const Document& report, const std::string& name) {
  std::vector<const Value*> rows;
  for (const Value& row : report.root.find("explain")->find("switches")->items)
    if (row.find("switch")->text.starts_with(name)) rows.push_back(&row);
  return rows;
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

TEST_CASE("an interleaved pipeline is tried with other schedules") {
  const Document report = explained(
      "--explain --set /plan/pp/degree=2 --set /plan/pp/schedule=interleaved --set /plan/pp/virtual=2");
  int ran = 0;
  for (const Value* row : switches_of(report, "pipeline schedule ")) {
    INFO(row->find("switch")->text);
    if (row->find("refusal") != nullptr)
      CHECK(row->find("refusal")->text.find("/plan/pp/virtual") == std::string::npos);
    ran += row->find("gain") != nullptr ? 1 : 0;
  }
  CHECK(ran >= 3);
}

TEST_CASE("FP8 is tried with weights that shards can be gathered of") {
  const Document report = explained(
      "--explain --set /plan/dp/zero=3 --set /plan/precision/gemm=bf16 --set "
      "/plan/precision/dispatch=bf16 --set /plan/precision/fused_quantise=false --set /plan/memory=report");
  const auto rows = switches_of(report, "FP8 matrix products");
  REQUIRE(rows.size() == 1);
  CHECK(rows.front()->find("gain") != nullptr);
}

TEST_CASE("with adapters nothing is tried that they refuse") {
  const std::string lora = R"( --set '/workload/lora={"rank": 8, "targets": ["qkv", "TARGET"]}')";
  const std::string base = "--explain --set /plan/precision={}";
  for (const std::string target : {"mlp_up", "expert_up"}) {
    std::string options = base + lora;
    options.replace(options.find("TARGET"), 6, target);
    const Document report = explained(options);
    INFO(target);
    CHECK(switches_of(report, "FP8 dispatch").size() == (target == "mlp_up" ? 1 : 0));
    CHECK(switches_of(report, "FP8 matrix products").size() == 1);
    for (const Value* row : switches_of(report, "")) {
      INFO(row->find("switch")->text);
      CHECK(row->find("refusal") == nullptr);
    }
  }
}

// Of racks of 72 devices 16 ranks of experts fill 64: on these they need no network, which is slow here.
TEST_CASE("groups over scale-up domains are tried inside of them, on fewer devices") {
  const std::string racks =
      "--set '/cluster={\"pools\": [{\"name\": \"a\", \"accelerator\": \"gb200-nvl72\", \"node\": "
      "\"gb200-nvl72\", \"nodes\": 4}], \"fabric\": {\"type\": \"rail-optimised-clos\", \"nic\": \"100 "
      "Gb/s\"}}' "
      "--set /plan/memory=report --set /plan/ep/degree=16 --set /plan/ep/nodes_per_token=0 --set "
      "/workload/global_batch=1152 ";
  const Document report = explained("--explain " + racks);
  const auto rows = switches_of(report, "expert groups whole in their domains");
  REQUIRE(rows.size() == 1);
  CHECK(rows.front()->find("switch")->text == "expert groups whole in their domains, on 256 of 288 devices");
  REQUIRE(rows.front()->find("gain") != nullptr);
  CHECK(rows.front()->find("gain")->number > 0);
}
