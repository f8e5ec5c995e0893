// A step simulated with compute costs from a device at hand.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>

#include "real/bench/measuring_device.h"
#include "sim/emulate_run.h"
#include "tests/scenario_file.h"
#include "tests/unit/cost/fake_bench.h"
#include "workloads/perform/perform.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;

const std::string kEmulated = test::scenario_file("smoke/emulate-64.json");

// The shipped scenario, made small enough for a test.
Job small_job() {
  Changes changes;
  changes.sets = {"/workload/sequence_length=64", "/model/layers=2", "/workload/global_batch=32"};
  return read_job(kEmulated, changes, Library(""));
}

struct Emulated {
  RunFacts facts;
  Metrics metrics;
  Timeline timeline;
  std::string json;  // the report
};

Emulated emulate(const std::function<MeasuringDevice()>& device, const std::string& journal = "") {
  Job job = small_job();
  EmulateRun run;
  run.simulation.options = {NetworkDetail::kFluid, Driver::kPlain};
  run.device = device;
  run.journal = journal;
  Outcome outcome = perform(job,
                            [&](const Job& same, const Layout& layout, Recorder& recorder) {
                              return start_emulation(same, layout, recorder, run);
                            },
                            {});
  return {outcome.report.facts, outcome.report.metrics, std::move(outcome.timeline),
          report_json(outcome.report)};
}

}  // namespace

TEST_CASE("an emulated step takes what its ops take on the device at hand") {
  // Every op takes a second, beside which the network's microseconds vanish: all compute spans are whole
  // seconds, and the step lasts a whole number of them.
  const FakeDevice device([](const CostQuery&) { return 1.0; });
  const Emulated outcome = emulate([&] { return device.open(); });
  int computed = 0;
  for (const Span& span : outcome.timeline.spans) {
    if (span.lane != Lane::kCompute || span.origin == Origin::kNetwork) continue;
    CHECK((span.end - span.start).seconds() == Approx(1.0));
    ++computed;
  }
  CHECK(computed > 100);
  const RunFacts& facts = outcome.facts;
  CHECK(facts.executor == "emulate");
  REQUIRE(facts.measured);
  CHECK(facts.measured->device == "a fake");
  CHECK(facts.measured->ops == device.measured());
  CHECK(facts.measured->once == Approx(device.measured()));
}

TEST_CASE("an emulated step that goes on measures nothing twice and says the same") {
  const std::string journal = (fs::temp_directory_path() / "moebius-emulate-test.jsonl").string();
  fs::remove(journal);
  const Formula seconds = [](const CostQuery& query) { return 1e-6 * static_cast<double>(query.shape.m); };
  const FakeDevice first(seconds), second(seconds);
  const Emulated a = emulate([&] { return first.open(); }, journal);
  const Emulated b = emulate([&] { return second.open(); }, journal);
  CHECK(second.asked->empty());
  CHECK(a.metrics.makespan.ns == b.metrics.makespan.ns);
  CHECK(b.facts.measured->from_journal == b.facts.measured->ops);
  CHECK(b.facts.measured->seconds == 0);
  fs::remove(journal);
}

TEST_CASE("a step of 64 ranks emulated on the host takes little longer than its measurements") {
  const Emulated outcome = emulate([] { return open_measuring_device("host", nullptr); });
  const RunFacts& facts = outcome.facts;
  REQUIRE(facts.measured);
  CHECK(facts.measured->ops > 50);
  CHECK(facts.measured->seconds > 0);
  CHECK(facts.wall_s < 10 * facts.measured->seconds);
  CHECK(report_value(outcome.json, "measured.once_s").value() == facts.measured->once);
}

TEST_CASE("a device that is none is told with those that are") {
  CHECK_THROWS_WITH(open_bench("hosd", nullptr),
                    "--device: expected host, cuda:0, found \"hosd\" (did you mean \"host\"?)");
}

}  // namespace moebius
