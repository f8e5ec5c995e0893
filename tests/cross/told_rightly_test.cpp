// What reports and explanations say of runs that are not the plain ones.
#include <string>

#include <catch2/catch.hpp>

#include "hw/document.h"
#include "hw/units.h"
#include "tests/process.h"
#include "tests/scenario_file.h"

using namespace moebius;

namespace {

test::Finished succeeded(const std::string& arguments) {
  test::Finished run = test::run_moebius(arguments);
  INFO(arguments << "\n" << run.err);
  REQUIRE(run.exit_code == 0);
  return run;
}

double seconds_of(const Document& report, const std::string& cause) {
  for (const Value& row : report.root.find("explain")->find("causes")->items)
    if (row.find("cause")->text == cause) return row.find("seconds")->number;
  return 0;
}

Document explained(const std::string& file, const std::string& options) {
  return parse_document(succeeded("run " + test::scenario_file(file) + " --explain --json " + options).out,
                        "out");
}

}  // namespace

TEST_CASE("a run that goes on from a checkpoint is explained by the steps that it has") {
  const test::Scratch scratch;
  const std::string small = test::scenario_file("smoke/train-small.json"), saved = scratch.path("saved");
  succeeded("run " + small + " --executor host --set /workload/steps=2 --set /plan/save=" + saved);
  const test::Finished resumed = succeeded(
      "run " + small + " --set /timeline/detail=ops --set /workload/steps=4 --set /plan/weights=" + saved +
      " --set /plan/resume=true --explain");
  CHECK_THAT(resumed.out, Catch::Contains("ops of layer"));
}

TEST_CASE("losses of a model that is not computed whole are told as that") {
  const std::string gpt =
      "run " + test::scenario_file("smoke/train-small.json") +
      R"( --json --set /workload/steps=1 --set '/plan={"dp": {"degree": 1}, "fold": false}')"
      R"( --set '/model={"base": "gpt-1.7b", "layers": 2, "hidden": 64, "heads": 4, "head_dim": 16,)"
      R"( "vocabulary": 64, "dense_width": 128, "learned_positions": 64}')";
  CHECK_THAT(succeeded(gpt + " --executor host").out,
             Catch::Contains(R"("left out": "biases but those of queries)"));
  CHECK_THAT(succeeded(gpt).out, !Catch::Contains("left out"));
}

TEST_CASE("copies to and from the host, and dense tensor parallelism, are told as what they are") {
  const std::string moe = "smoke/moe-64-h800.json", copies = "exposed copies to and from host memory",
                    parts = "exposed tensor- and context-parallel communication",
                    replicas = "exposed reduction of gradients, gathering of parameters";
  const Document plain = explained(moe, "");
  const Document away = explained(moe, R"(--set '/plan/offload={"optimizer": true, "activations": true}')");
  CHECK(seconds_of(plain, copies) == 0);
  CHECK(seconds_of(away, copies) > 0.1);
  CHECK(seconds_of(away, replicas) < seconds_of(plain, replicas) + 0.05);
  const Document cut = explained(moe, "--set /plan/tp/dense=8");
  CHECK(seconds_of(plain, parts) == 0);
  CHECK(seconds_of(cut, parts) > 0.01);
}

TEST_CASE("on the native network what would help is said to be told elsewhere") {
  if (test::run_moebius("--version").out.find("SimGrid") == std::string::npos) {
    WARN("skipped: this build has no SimGrid");
    return;
  }
  const test::Finished run =
      succeeded("run " + test::scenario_file("smoke/moe-layer.json") + " --detail native --explain");
  CHECK_THAT(run.out, Catch::Contains("what would help: told at --detail fluid"));
  CHECK_THAT(run.out, !Catch::Contains("not possible"));
  const Document told = explained("smoke/moe-layer.json", "--detail native");
  CHECK(told.root.find("explain")->find("untried") != nullptr);
}

// Rollout, scoring and training in turns: more than thrice the training alone.
TEST_CASE("weeks of a job of reinforcement learning go by its whole steps") {
  const std::string rl = test::scenario_file("study/jobs/rl-qwen3-30b.json");
  const Document job = parse_document(succeeded("run " + rl + " --json").out, "out");
  const double step = job.root.find("rl")->find("step_time_s")->number;
  const test::Scratch scratch;
  const std::string days = scratch.write("days.json", R"({"moebius": 1, "kind": "cluster", "name": "two days",
    "cluster": {"pools": [{"name": "all", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 5}],
      "fabric": {"type": "multi-plane-fat-tree", "planes": 8, "nic": "400 Gb/s"}},
    "operations": {"duration": "2 d", "runs": 2, "spares": 1},
    "jobs": [{"name": "rl", "nodes": 4, "scenario": ")" + rl +
                                                          R"("}]})");
  const test::Finished run = test::run_moebius("run " + days + " --json");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const Document cluster = parse_document(run.out, "out");
  const std::string told = cluster.root.find("provenance")->find("step of rl")->text;
  CHECK_THAT(told, Catch::EndsWith(to_text(time_from_seconds(step))));
  const test::Finished fewer = test::run_moebius("check " + days + " --set /jobs/0/nodes=3");
  CHECK_THAT(fewer.err, Catch::Contains("/jobs/0/nodes: expected nodes with the 32 devices of its scenario, "
                                        "found 24"));
}

TEST_CASE("a service in a queue of its own goes before a neighbour in the highest one, too") {
  const std::string shared = test::scenario_file("study/cluster-shared-fabric.json");
  const Document report = parse_document(
      succeeded("run " + shared + " --json --set /queueing/queues/0/network_queue=7").out, "out");
  const Value& row = report.root.find("cluster")->find("beside_training")->items[0];
  CHECK(row.find("own_queue")->find("network")->number > row.find("one_queue")->find("network")->number);
}

// 16,384 tokens in steps of 3; `sent` is of a step, what the tiers carried of all.
TEST_CASE("the network of a run of several steps says of how many its tiers tell") {
  const Document report = parse_document(
      succeeded("run " + test::scenario_file("smoke/moe-layer.json") + " --json --set /workload/steps=3").out,
      "out");
  CHECK(report.root.find("network")->find("steps")->number == 3);
}

TEST_CASE("what a run is compared with is not part of its schedule") {
  const std::string replay = test::scenario_file("smoke/kv-replay.json");
  const auto schedule = [&](const std::string& options) {
    const Document report = parse_document(succeeded("run " + replay + " --json " + options).out, "out");
    return report.root.find("provenance")->find("schedule")->text;
  };
  CHECK(schedule("") ==
        schedule(
            R"(--set '/expect=[{"metric": "kv.hit_share", "value": 1, "tolerance": 10, "source": "x"}]')"));
}

// Ten steps of 4.5 ms, of which four are kept: the one in the middle of all is not among them.
TEST_CASE("what a window cuts is not what explains a run") {
  const test::Finished run = succeeded("run " + test::scenario_file("smoke/train-interleaved.json") +
                                       " --detail alpha-beta --explain --set /timeline/detail=ops --set "
                                       "'/timeline/window=20 ms'");
  CHECK_THAT(run.out, Catch::Contains("ops of layer "));
  CHECK_THAT(run.out, !Catch::Contains("ops of no layer"));
}

TEST_CASE("one operation is explained without layers, which it has not") {
  const std::string text =
      succeeded("run " + test::scenario_file("smoke/allreduce-1024.json") + " --explain").out;
  CHECK_THAT(text, Catch::Contains("ops of class 0: 1024 ranks from rank 0, in the order they start"));
  CHECK_THAT(text, !Catch::Contains("by layer") && !Catch::Contains("0.000 ms"));
}

TEST_CASE("where rates of measured runs would lie is told like the rate itself") {
  const std::string text = succeeded("run " + test::scenario_file("smoke/moe-64-h800.json")).out;
  const std::size_t line = text.find("  tokens_per_s ");
  REQUIRE(line != std::string::npos);
  CHECK_THAT(text.substr(line, 60), !Catch::Contains("e+"));
}

TEST_CASE("a stage without modules that predict further tokens is not said to have any") {
  const std::string checked = "check " + test::scenario_file("smoke/moe-64-h800.json");
  CHECK_THAT(succeeded(checked + " --set /model/mtp_layers=0").out, Catch::Contains(", head and loss\n"));
  CHECK_THAT(succeeded(checked + " --set /model/mtp_layers=1").out,
             Catch::Contains(", head, MTP modules and loss\n"));
}
