// What boards draw: idle, and for the work of a step or of a service.
#include "tests/laws/simulator.h"
#include "workloads/set_option.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

constexpr double kAtMost = 1.02;  // of the limit: a board lowers its clock after the work that exceeded it

struct Drawn {
  double watts = 0;  // of a device, mean over the step
  double joules = 0, seconds = 0;
  std::optional<double> idle;
};

Drawn drawn_by(const std::string& chip, const std::vector<std::string>& sets = {}) {
  const Library library("");
  Document document = parse_document(
      R"({"moebius": 1, "kind": "training", "name": "drawn", "seed": 1, "model": "qwen2.5-7b",
        "cluster": {"pools": [{"name": "a", "accelerator": "h200-sxm", "node": "hgx-8", "nodes": 1}],
                    "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}, "variation": {"power": 0}},
        "plan": {"dp": {"degree": 8, "zero": 1}},
        "workload": {"steps": 2, "sequence_length": 4096, "global_batch": 16, "micro_batch": 1}})",
      "drawn");
  apply_sets({"/model={\"base\":\"qwen2.5-7b\",\"layers\":4}", "/cluster/pools/0/accelerator=" + chip},
             document);
  apply_sets(sets, document);
  Job job = read_job(std::move(document), {}, library);
  const Hooks hooks{.wants_spans = false, .quiet = true};
  const Outcome outcome = perform(job, simulator(NetworkDetail::kFluid), hooks);
  const Report& report = outcome.report;
  Drawn drawn;
  drawn.joules = report.metrics.joules();
  drawn.seconds = report.metrics.makespan.seconds();
  drawn.idle = report.facts.idle_watts.of(0);
  drawn.watts = drawn.joules / drawn.seconds / job.scenario.ranks() + drawn.idle.value_or(0);
  return drawn;
}

TEST_CASE(
    "boards draw more than idle and no more than their limit, close to it where products fill the step") {
  const Catalog catalog;
  for (const char* chip : {"h200-sxm", "h100-sxm", "b200-sxm", "h20-sxm"}) {
    INFO(chip);
    const Drawn drawn = drawn_by(chip);
    REQUIRE(drawn.idle);
    CHECK(*drawn.idle > 0);
    CHECK(drawn.watts > *drawn.idle);
    CHECK(drawn.watts < kAtMost * catalog.accelerator(chip).power.value);
    CHECK(drawn.watts > 0.5 * catalog.accelerator(chip).power.value);
  }
}

TEST_CASE("more microbatches draw in proportion, and energies of a lower limit are lower") {
  const Drawn one = drawn_by("h200-sxm"), two = drawn_by("h200-sxm", {"/workload/global_batch=32"}),
              three = drawn_by("h200-sxm", {"/workload/global_batch=48"});
  CHECK(three.joules - two.joules == Approx(two.joules - one.joules).epsilon(0.03));
  const Drawn capped =
      drawn_by("h200-sxm", {R"(/cluster/pools/0/accelerator={"base":"h200-sxm","power":"400 W"})"});
  CHECK(capped.watts < kAtMost * 400);
  CHECK(capped.joules < one.joules);  // the same work at a lower clock
  CHECK(capped.seconds > one.seconds);
}

TEST_CASE("beside the board that draws most the others draw less than their limit") {
  const Drawn alike = drawn_by("h200-sxm"), unlike = drawn_by("h200-sxm", {"/cluster/variation/power=0.044"});
  CHECK(unlike.seconds > alike.seconds);
  CHECK(unlike.watts < alike.watts);
}

TEST_CASE("of a chip without measured power no energy is told") {
  const Drawn drawn = drawn_by("kunlun-p800");
  CHECK(!drawn.idle);
  CHECK(drawn.joules == 0);
}

}  // namespace
}  // namespace moebius
