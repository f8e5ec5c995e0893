// A run that goes on from its checkpoint is the run that never stopped, to the bit.
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "models/weights/safetensors.h"
#include "real/host/host_run.h"
#include "tests/cross/resumed_runs.h"

#include "tests/catch.h"

namespace moebius::test {
namespace {

std::vector<double> joined(const TrainedRun& first, const TrainedRun& second) {
  std::vector<double> all = first.losses;
  all.insert(all.end(), second.losses.begin(), second.losses.end());
  return all;
}

void require_resumes(const std::vector<std::string>& plan) {
  const SixSteps runs = six_steps(on_host(), plan);
  REQUIRE(runs.whole.losses.size() == 6);
  CHECK(joined(runs.first, runs.second) == runs.whole.losses);
  CHECK(runs.resumed_files.size() >= 3);  // weights, optimizer, index
  for (const auto& [name, bytes] : runs.whole_files) {
    INFO(name);
    REQUIRE(runs.resumed_files.count(name) == 1);
    CHECK((runs.resumed_files.at(name) == bytes));
  }
  CHECK(runs.whole_files.size() == runs.resumed_files.size());
}

}  // namespace

TEST_CASE("three steps and three more from their checkpoint are six steps, to the bit") {
  require_resumes({});
}

TEST_CASE("a run with sharded optimizer states over pipeline and experts goes on to the bit") {
  require_resumes({"/plan/dp/degree=2", "/plan/dp/zero=1", "/plan/pp/degree=2", "/workload/micro_batch=1"});
}

TEST_CASE("a run with several stages on a rank goes on to the bit") {
  for (const std::string pipeline : {R"({"degree": 2, "schedule": "dualpipe"})",
                                     R"({"degree": 2, "schedule": "interleaved", "virtual": 2})"})
    require_resumes({"/plan/pp=" + pipeline, "/plan/dp/zero=1", "/workload/micro_batch=1"});
}

TEST_CASE("a run in FP8 with experts of drawn popularity goes on to the bit") {
  require_resumes({"/plan/precision/gemm=fp8", "/plan/precision/dispatch=fp8",
                   R"(/workload/experts/popularity={"zipf": 0.6})"});
}

// As small as the model that it stands in for; biases have states of their own.
TEST_CASE("a Qwen2-MoE goes on to the bit, with biases, heads over two ranks and sharded states") {
  require_resumes(
      {R"(/model={"base": "qwen1.5-moe-a2.7b", "layers": 2, "hidden": 64, "heads": 4, "kv_heads": 4,
      "head_dim": 16, "vocabulary": 64, "experts": {"routed": 8, "active": 2, "width": 32, "shared": 1, "shared_width": 32}})",
       R"(/plan/tp={"attention": 2, "dense": 2, "sequence_parallel": true})", "/plan/dp/zero=1"});
}

TEST_CASE("moments in BF16 go on to the bit") {
  require_resumes({"/plan/precision/optimizer_states=bf16"});
}

TEST_CASE("checkpoints on the way change nothing, and the last one stays") {
  const Scratch scratch;
  const std::string save = "/plan/save=" + scratch.path("kept");
  const TrainedRun plain = train_small(on_host(), {"/workload/steps=5"});
  const TrainedRun saved = train_small(on_host(), {"/workload/steps=5", save, "/plan/save_every=2"});
  CHECK(saved.losses == plain.losses);
  CHECK(load_index(scratch.path("kept/moebius-checkpoint.json")).step == 5);
  CHECK_FALSE(std::filesystem::exists(scratch.path("kept.old")));
}

TEST_CASE("an interrupted run saves the steps that it has done, and goes on from there in place") {
  const Scratch scratch;
  const std::string kept = scratch.path("kept"), save = "/plan/save=" + kept;
  const TrainedRun whole = train_small(on_host(), {"/workload/steps=8"});
  // Ctrl-C comes after the checkpoint of the third step.
  const StartExecutor start = [](const Job& job, const Layout& layout, Recorder& recorder) {
    StartedExecutor engine = start_host(job, layout, recorder, {});
    engine.save = [write = engine.save](int step) {
      write(step);
      if (step == 3) std::raise(SIGINT);
    };
    return engine;
  };
  const TrainedRun first = train_small(start, {"/workload/steps=8", save, "/plan/save_every=3"});
  const auto done = static_cast<int>(first.losses.size());
  CHECK(done > 3);
  CHECK(done < 8);
  CHECK(first.interrupted ==
        fmt::format("interrupted after step {} of 8: to go on, add --set /plan/weights={} "
                    "--set /plan/resume=true",
                    done, kept));
  const TrainedRun second =
      train_small(on_host(), {"/workload/steps=8", save, "/plan/weights=" + kept, "/plan/resume=true"});
  CHECK(second.interrupted.empty());
  CHECK(joined(first, second) == whole.losses);
  CHECK(load_index(kept + "/moebius-checkpoint.json").step == 8);
}

TEST_CASE("a run that goes on dumps the activations of its own first step") {
  const Scratch scratch;
  const std::string kept = scratch.path("kept"), dump = scratch.path("dump");
  train_small(on_host(), {"/workload/steps=2", "/plan/save=" + kept});
  train_small(on_host(dump), {"/workload/steps=3", "/plan/weights=" + kept, "/plan/resume=true"});
  const SafetensorsFile file(dump);
  for (const char* name : {"input_ids", "model.embed_tokens", "model.layers.3", "lm_head"})
    CHECK(file.find(name) != nullptr);
}

TEST_CASE("a dump of activations that could not be written is refused before the first step") {
  const Scratch scratch;
  const std::string kept = scratch.path("kept"), dump = scratch.path("none/dump");
  CHECK_THROWS_WITH(train_small(on_host(dump), {"/workload/steps=1", "/plan/save=" + kept}),
                    Catch::Contains(dump + ": cannot be written"));
  CHECK_FALSE(std::filesystem::exists(kept));
}

TEST_CASE("another plan, or a checkpoint of weights alone, is no place to go on from") {
  const Scratch scratch;
  const std::string kept = scratch.path("kept");
  train_small(on_host(), {"/workload/steps=2", "/plan/save=" + kept});
  const std::vector<std::string> resume{"/plan/weights=" + kept, "/plan/resume=true"};
  CHECK_THROWS_WITH(
      train_small(on_host(), resume + std::vector<std::string>{"/workload/steps=4", "/plan/dp/zero=1"}),
      kept +
          ": the optimizer's state is that of tp=1,pp=1,ep=2,cp=1,dp=2,zero=0, the plan has "
          "tp=1,pp=1,ep=2,cp=1,dp=2,zero=1");
  CHECK_THROWS_WITH(train_small(on_host(), resume + std::vector<std::string>{"/workload/steps=2"}),
                    Catch::Contains("has 2 steps behind it: expected more in /workload/steps, found 2"));
}

}  // namespace moebius::test
