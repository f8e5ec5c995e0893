// Checkpoints and dumps on the command line: what is wrong is one sentence and exit code 2; what drifts is
// exit code 1.
#include <catch2/catch.hpp>

#include <filesystem>

#include "tests/process.h"

namespace {

using namespace moebius::test;
namespace fs = std::filesystem;

const std::string kScenario = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/moe-4-layer.json";
const std::string kOnHost = "run " + kScenario + " --executor host ";

void refused(const std::string& arguments, const std::string& sentence) {
  INFO(arguments);
  const Finished finished = run_moebius(arguments);
  CHECK(finished.exit_code == 2);
  CHECK(finished.out.empty());
  CHECK(finished.err == "moebius: " + sentence + "\n");
}

Finished succeeded(const std::string& arguments) {
  INFO(arguments);
  const Finished finished = run_moebius(arguments);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished;
}

}  // namespace

TEST_CASE("weights that are not there stop a run before it starts") {
  refused(kOnHost + "--set /plan/weights=/nowhere", "/nowhere: expected a checkpoint, found nothing");
  const Scratch scratch;
  const std::string file = scratch.write("w.safetensors", "short");
  refused(kOnHost + "--set /plan/weights=" + file,
          file + ": expected a safetensors file of at least 8 bytes, found 5");
}

TEST_CASE("weights that are not there stop a simulation, too, though it reads none of them") {
  const Scratch scratch;
  fs::create_directory(scratch.path("empty"));
  for (const char* command : {"run ", "check "}) {
    refused(command + kScenario + " --set /plan/weights=/nowhere",
            "/nowhere: expected a checkpoint, found nothing");
    refused(command + kScenario + " --set /plan/weights=" + scratch.path("empty"),
            scratch.path("empty") +
                ": expected moebius-checkpoint.json, model.safetensors.index.json or "
                "model.safetensors, found none of them");
    refused(command + kScenario + " --set /plan/weights=",
            kScenario + ": --set /plan/weights: expected a checkpoint or \"random\", found \"\"");
  }
}

TEST_CASE("a simulation leaves no weights and no activations behind") {
  refused("run " + kScenario + " --set /plan/save=/tmp/none",
          kScenario + ": /plan/save: a simulation computes no numbers: add --executor host");
  refused("run " + kScenario + " --dump-activations /tmp/none",
          "--dump-activations: a simulation computes no numbers: add --executor host");
}

TEST_CASE("kernels are traced on a GPU only") {
  for (const std::string executor : {"", " --executor host"}) {
    refused("run " + kScenario + executor + " --trace-kernels /tmp/none",
            "--trace-kernels: expected --executor cuda: only a GPU's kernels are traced");
  }
}

TEST_CASE("a checkpoint never goes where something is") {
  const Scratch scratch;
  fs::create_directory(scratch.path("there"));
  scratch.write("there/precious", "x");
  refused(kOnHost + "--set /plan/save=" + scratch.path("there"),
          scratch.path("there") + ": expected a new or empty directory, found something there");
}

TEST_CASE(
    "a run that is to go on needs a checkpoint with steps ahead of it, one that saves on the way a place") {
  const std::string small = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/train-small.json";
  refused("check " + small + " --set /plan/resume=true",
          small + ": --set /plan/resume: expected a checkpoint in `weights` to go on from, found \"random\"");
  refused("check " + small + " --set /plan/save_every=3",
          small + ": --set /plan/save_every: expected a directory in `save`, found none");
  const Scratch scratch;
  refused("check " + small + " --set /plan/resume=true --set /plan/weights=" + scratch.path("none"),
          scratch.path("none/moebius-checkpoint.json") + ": expected a file, found none");
}

TEST_CASE("conversions that cannot be are refused") {
  refused("convert /nowhere --to hf --out /tmp/none", "/nowhere: expected a checkpoint, found nothing");
  refused("convert /nowhere --to fh --out /tmp/none",
          "--to: expected \"hf\" or degrees such as tp=2,pp=2,ep=4, found \"fh\"");
}

TEST_CASE("a run saves, goes on from there in any layout, and is aligned or not") {
  const Scratch scratch;
  const auto path = [&](const std::string& name) { return scratch.path(name); };
  succeeded(kOnHost + "--set /plan/save=" + path("one") + " --dump-activations " + path("start"));
  succeeded("convert " + path("one") + " --to tp=2,pp=4,ep=2 --out " + path("two"));
  succeeded("convert " + path("two") + " --to hf --out " + path("hf"));
  const auto from = [&](const std::string& weights, const std::string& dump) {
    const std::string out =
        succeeded(kOnHost + "--set /plan/weights=" + path(weights) + " --dump-activations " + path(dump)).out;
    const std::size_t at = out.find("loss by step");
    REQUIRE(at != std::string::npos);
    return out.substr(at, out.find('\n', at) - at);
  };
  CHECK(from("one", "a") == from("hf", "b"));
  const Finished same = succeeded("align " + path("a") + " --reference " + path("b"));
  CHECK(same.out.find("aligned, within what bf16 allows\n") != std::string::npos);
  // One step later the weights are others.
  const Finished moved = run_moebius("align " + path("start") + " --reference " + path("a"));
  CHECK(moved.exit_code == 1);
  CHECK(moved.out.find("model.layers.0.self_attn drifts first, beyond what bf16 allows\n") !=
        std::string::npos);
}
