// What the queues of a cluster may not be; each refused with one exact sentence.
#include <fmt/format.h>

#include "tests/invalid/refusals.h"
#include "workloads/job.h"

using namespace moebius;

namespace {

constexpr const char* kShared = "study/cluster-shared-fabric.json";  // 128 nodes of 8, 2 of them spare

// The sentence after the file, once the scenarios of its shapes are looked at.
std::string refusal_of_shapes(const std::vector<std::pair<const char*, const char*>>& changes) {
  static const Library library("");
  const std::string file = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/" + kShared;
  Document document = parse_document(test::text_of(file), file);
  for (const auto& [pointer, json] : changes) set_at_pointer(document, pointer, json);
  try {
    read_job(std::move(document), {}, library);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    const std::string text = error.what();
    return text.substr(text.find(": ") + 2);
  }
  return "";
}

}  // namespace

TEST_CASE("queues and shapes that do not fit together are refused at their key") {
  check(
      "study/cluster-10000-cards-30-days.json",
      {
          {"/queueing/shapes/0/queue", "pretrainng",
           R"(/queueing/shapes/0/queue: expected the name of a queue, found "pretrainng" (did you mean "pretraining"?))"},
          {"/queueing/shapes/0/pools", R"(["h80"])",
           R"(/queueing/shapes/0/pools: expected the name of a pool, found "h80" (did you mean "h20"?))"},
          {"/queueing/shapes/0/pools", R"("h800")", "/queueing/shapes/0/pools: expected an array of names"},
          {"/queueing/shapes/4/sizes", R"([{"cards": 3}])",
           "/queueing/shapes/4/sizes: 3 cards are no equal part of a node and no number of whole nodes of "
           "its pools"},
          {"/queueing/shapes/0/sizes/1/cards", "128",
           "/queueing/shapes/0/sizes/1/cards: expected more cards than the size before, found as many or "
           "fewer"},
          {"/queueing/shapes/6/sizes", R"([{"cards": 8}, {"cards": 16}])",
           "/queueing/shapes/6/sizes: expected one size, that of a replica, found several"},
          {"/queueing/load/jobs", "7",
           "/queueing/load/jobs: expected at least one job a shape, found 7 for 8 shapes"},
          {"/queueing/power_caps", R"([{"from": "2 d", "until": "1 d", "watts": 1e7}])",
           "/queueing/power_caps/0/until: expected a time after `from`, found one that is not"},
          {"/queueing/power_caps", R"([{"from": "30 d", "watts": 1e7}])",
           "/queueing/power_caps/0/from: expected a time before the end after 30 d, found 30 d"},
          {"/queueing/shapes/0/replicas", "3",
           R"(/queueing/shapes/0/replicas: "replicas" counts only with class "inference")"},
          {"/queueing/shapes/6/elastic", "true",
           R"(/queueing/shapes/6/elastic: expected false for class "inference", whose replicas have one size)"},
          {"/queueing/queues/1/name", "pretraining",
           R"(/queueing/queues/1/name: two queues named "pretraining")"},
          {"/queueing/shapes/1/name", "qwen3-235b",
           R"(/queueing/shapes/1/name: two shapes named "qwen3-235b")"},
          {"/operations/failures/trace", R"([{"time": "1 d", "node": 1250, "kind": "GPU"}])",
           "/operations/failures/trace/0/node: expected a node from 0 to 1249, found 1250"},
          {"/jobs", R"([{"name": "a", "nodes": 1, "model": "qwen3-8b", "step_time": "1 s"}])",
           "/jobs: expected `jobs` or `queueing`, found both"},
      });
  // Two quotas together are said at the line of both.
  CHECK_THAT(refusal("study/cluster-10000-cards-30-days.json", "/queueing/queues/0/quota", "0.6"),
             Catch::Contains("/queueing/queues: expected quotas of at most 1 together, found 1.15"));
  check("study/cluster-10000-cards-30-days.json", "/queueing/shapes/0/elastic", "false",
        R"(/queueing/shapes/0/least: "least" counts only with elastic true)");
}

TEST_CASE("what no pool holds is refused with what it has") {
  check(
      kShared,
      {
          {"/queueing/shapes/0/sizes", R"([{"cards": 1600}])",
           R"(/queueing/shapes/0/sizes: expected at most 1008 cards, those of pool "h800" without its spares, found 1600)"},
          {"/operations/spares", "128",
           "/operations/spares: expected fewer spares than the 128 nodes, found 128"},
          {"/operations/spares", "129",
           "/operations/spares: expected fewer spares than the 128 nodes, found 129"},
      });
}

TEST_CASE("who has nothing but a quota that is too small is refused") {
  CHECK(refusal(kShared, {{"/queueing/scheduler", R"({"partition": "static"})"}}) == "");
  CHECK(refusal(kShared, {{"/queueing/queues/1/quota", "0"}}) == "");  // it borrows
  CHECK_THAT(
      refusal(kShared,
              {{"/queueing/scheduler", R"({"partition": "static"})"}, {"/queueing/queues/1/quota", "0.01"}}),
      Catch::EndsWith(
          R"(/queueing/queues/1/quota: expected at least 16 cards of a pool, which shape "serve-235b" )"
          "takes and a static partition does not lend, found 10"));
}

TEST_CASE("some shape has a share of the jobs") {
  CHECK(refusal(kShared, "/queueing/shapes/0/jobs", "0") == "");
  CHECK_THAT(refusal(kShared, {{"/queueing/shapes/0/jobs", "0"}, {"/queueing/shapes/1/jobs", "0"}}),
             Catch::EndsWith("/queueing/shapes: expected a share of the jobs above 0, found none"));
}

TEST_CASE("shapes whose scenarios are not what they say are refused before anything runs") {
  CHECK(refusal_of_shapes({}) == "");
  CHECK(refusal_of_shapes({{"/queueing/shapes/0/scenario", "jobs/nope.json"}}) ==
        "--set /queueing/shapes/0/scenario: jobs/nope.json: expected a file, found none");
  CHECK(
      refusal_of_shapes({{"/queueing/shapes/0/class", "inference"},
                         {"/queueing/shapes/0/elastic", "false"},
                         {"/queueing/shapes/0/sizes", R"([{"cards": 64}])"}}) ==
      R"(/queueing/shapes/0/scenario: expected a scenario of kind "serving" for class "inference", found "training")");
  CHECK(
      refusal_of_shapes({{"/queueing/shapes/0/class", "sft"},
                         {"/queueing/shapes/0/scenario",
                          MOEBIUS_SOURCE_DIR "/scenarios/study/jobs/serve-qwen3-30b.json"}}) ==
      R"(--set /queueing/shapes/0/scenario: expected a scenario of kind "training" for class "sft", found "serving")");
  CHECK(
      refusal_of_shapes({{"/queueing/shapes/0/scenario",
                          MOEBIUS_SOURCE_DIR "/scenarios/study/cluster-loads.study.json"}}) ==
      R"(--set /queueing/shapes/0/scenario: expected a scenario of kind "training" for class "training", found "study")");
  CHECK_THAT(
      refusal_of_shapes({{"/queueing/shapes/0/model", "deepseek-v3"}}),
      Catch::StartsWith(R"(--set /queueing/shapes/0/model: expected "qwen3-30b-a3b", the model of )") &&
          Catch::EndsWith(R"(pretrain-qwen3-30b.json, found "deepseek-v3")"));
  CHECK_THAT(
      refusal_of_shapes({{"/queueing/shapes/0/sizes", R"([{"cards": 24}])"}}),
      Catch::StartsWith("/queueing/shapes/0/scenario: on 24 cards: ") &&
          Catch::EndsWith("pretrain-qwen3-30b.json:12: /plan/ep/degree: expert-parallel degree 8 does not "
                          "divide the tp 1 x cp 1 x dp 12 = 12 ranks of a pipeline stage"));
  // Its plan says dp 16 and tp 1.
  CHECK_THAT(refusal_of_shapes({{"/queueing/shapes/1/sizes", R"([{"cards": 32}])"}}),
             Catch::StartsWith("/queueing/shapes/1/scenario: on 32 cards: ") &&
                 Catch::EndsWith("serve-qwen3-235b.json: its plan is one of 16 devices"));
}

TEST_CASE("the scenario of a job that a command line names is looked for where it is given") {
  static const Library library("");
  const std::string file = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/study/llama3-54-days.json";
  Document document = parse_document(test::text_of(file), file);
  set_at_pointer(document, "/jobs/0/scenario", "jobs/nope.json");
  set_at_pointer(document, "/jobs/0/step_time", "0 s");
  CHECK_THROWS_WITH(read_job(std::move(document), {}, library),
                    "jobs/nope.json: expected a file, found none");
}
