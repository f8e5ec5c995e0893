// What is said to help, of plans that were run.
#include "tests/laws/simulator.h"
#include "workloads/advice/advice.h"
#include "workloads/set_option.h"

#include "tests/catch.h"

namespace moebius {
namespace {

// Two A100 whose memory is only reported: 73 of 86 GB with all computed again, 107 with nothing.
Document recomputing() {
  return parse_document(
      R"({"moebius": 1, "kind": "training", "name": "recomputing", "seed": 1,
        "model": {"base": "qwen3-8b", "layers": 8},
        "cluster": {"pools": [{"name": "a", "accelerator": "a100-sxm", "node": "hgx-8", "nodes": 1}],
                    "fabric": {"type": "rail-optimised-clos", "nic": "200 Gb/s"}},
        "plan": {"dp": {"degree": 2}, "recompute": {"policy": "full"}, "memory": "report"},
        "workload": {"sequence_length": 32768, "global_batch": 2, "micro_batch": 1}})",
      "recomputing");
}

TEST_CASE("a faster plan that does not fit is said not to, and stands behind those that do") {
  const Library library("");
  const ReadChanged read = [&](const std::vector<std::string>& sets) {
    return read_job(recomputing(), {.sets = sets, .seed = {}}, library);
  };
  const StartExecutor start = simulator(NetworkDetail::kFluid);
  Job job = read({});
  REQUIRE(job.memory->fits());
  const Outcome run = perform(job, start, {.wants_spans = false, .quiet = true});
  const Advice advice = advise(run, read, start);
  bool lacked = false, found = false;
  for (const TriedSwitch& tried : advice.switches) {
    if (!tried.refusal.empty()) continue;
    CHECK(!(lacked && tried.lacks.empty()));
    lacked |= !tried.lacks.empty();
    if (tried.name != "no recomputation") continue;
    found = true;
    CHECK(tried.gain > 0.2);
    CHECK(tried.lacks == "107 GB of 85.9 GB a device");
  }
  CHECK(found);
  CHECK_THAT(to_text(advice), Catch::Contains("; does not fit: 107 GB of 85.9 GB a device"));
}

// Folded, a rank would be the fullest of both passes of a pair.
TEST_CASE("pairs of passes with uneven experts are tried rank by rank") {
  const Library library("");
  const auto with = [&](std::vector<std::string> sets) {
    sets.emplace_back(R"(/workload/experts={"popularity":{"zipf":0.5}})");
    sets.emplace_back("/workload/global_batch=128");
    Job job = read_job(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/moe-64-h800.json",
                       {.sets = sets, .seed = {}}, library);
    job.scenario.timeline.detail = Detail::kNone;
    return job;
  };
  const StartExecutor start = simulator(NetworkDetail::kFluid);
  const Hooks hooks{.wants_spans = false, .quiet = true};
  Job job = with({}), unfolded = with({"/plan/overlap/two_batch=true", "/plan/fold=false"});
  const Advice advice = advise(perform(job, start, hooks), with, start);
  const double alone = perform(unfolded, start, hooks).report.metrics.makespan.seconds();
  bool found = false;
  for (const TriedSwitch& tried : advice.switches) {
    if (tried.name != "forward beside backward passes") continue;
    found = true;
    CHECK(tried.step_time_s == Approx(alone).epsilon(1e-9));
  }
  CHECK(found);
  // And so is what they are compared with.
  Job folded = with({"/plan/overlap/two_batch=true"});
  const ReadChanged beside = [&](std::vector<std::string> sets) {
    sets.emplace_back("/plan/overlap/two_batch=true");
    return with(std::move(sets));
  };
  for (const TriedSwitch& tried : advise(perform(folded, start, hooks), beside, start).switches)
    if (tried.name == "experts in perfect balance")
      CHECK(tried.gain == Approx(alone / tried.step_time_s - 1).epsilon(1e-9));
}

}  // namespace
}  // namespace moebius
