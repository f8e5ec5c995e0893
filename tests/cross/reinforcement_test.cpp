// A step of reinforcement learning beside its phases run by themselves.
#include "hw/document.h"
#include "tests/process.h"

#include <catch2/catch.hpp>

using namespace moebius;

namespace {

double number(const std::string& scenario, const std::string& options, std::vector<std::string> path) {
  const test::Finished run = test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) +
                                               "/scenarios/smoke/" + scenario + " --json " + options);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const Document report = parse_document(run.out, "report.json");
  const Value* value = &report.root;
  for (const std::string& key : path) REQUIRE((value = value->find(key)) != nullptr);
  return value->number;
}

double of_step(const std::string& key, const std::string& options = "") {
  return number("rl-64-h800.json", options, {"rl", key});
}

}  // namespace

TEST_CASE("a step is its phases one after the other") {
  const double sum = of_step("rollout_s") + of_step("reference_s") + of_step("reward_s") +
                     of_step("training_s") + of_step("sync_s");
  CHECK(of_step("step_time_s") == Approx(sum));
  for (const char* phase : {"rollout_s", "reference_s", "reward_s", "training_s", "sync_s"})
    CHECK(of_step(phase) > 0);
}

// A given rate: responses over rate and devices, 512 x 1024 tokens / (1000 x 64) = 8.192 s.
TEST_CASE("a rollout by a given rate takes its tokens over the rate of all devices") {
  const std::string given = "--set '/workload/rl/rollout={\"tokens_per_s_per_device\": 1000}'";
  CHECK(of_step("rollout_s", given) == Approx(8.192));
  CHECK(of_step("rollout_given", given) == 1);
}

// Forward passes only: less than half of a step that does twice as much again in reverse, and more than a
// fifth.
TEST_CASE("scoring by the reference takes the forward passes of a step") {
  const double scoring = of_step("reference_s"), training = of_step("training_s");
  CHECK(scoring < training / 2);
  CHECK(scoring > training / 5);
}

TEST_CASE("phases that are switched off take no time and change no other") {
  const std::string none = "--set /workload/rl/reference=false --set /workload/rl/sync=none";
  CHECK(of_step("reference_s", none) == 0);
  CHECK(of_step("sync_s", none) == 0);
  CHECK(of_step("training_s", none) == of_step("training_s"));
}

// 2,048 sequences are four batches; each is generated and scored.
TEST_CASE("a rollout of several batches is trained on batch by batch") {
  const std::string four = "--set /workload/rl/prompts=256";
  CHECK(of_step("updates", four) == 4);
  CHECK(of_step("training_s", four) == Approx(4 * of_step("training_s")));
  CHECK(of_step("reference_s", four) == Approx(4 * of_step("reference_s")).epsilon(0.02));
  CHECK(of_step("rollout_s", four) > of_step("rollout_s"));
}

// As many tokens, but the longest response of 4,096 has its last three quarters nearly alone.
TEST_CASE("a rollout ends with its longest response") {
  const std::string lengths =
      R"(--set '/workload/rl={"prompts": 64, "samples": 8, "response_lengths": {"lognormal": {"median": 730, )"
      R"("sigma": 0.9, "most": 4096}}, "rollout": {"serving": {"decode": {"attention": {"dp": 64, "tp": 1}, )"
      R"("ep": {"degree": 64}, "max_batch": 64}, "prefill": {"token_budget": 8192}}}}')";
  const std::string alike = "--set /workload/rl/rollout/serving/steps=surface";
  const double tail = of_step("rollout_s", lengths), even = of_step("rollout_s", alike);
  CHECK(tail > 1.5 * even);
  CHECK(tail < 4 * even);
  CHECK(of_step("training_s", lengths) == Approx(of_step("training_s")));
}
