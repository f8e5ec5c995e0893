// Boards at their power limit: folded and one by one, in one pool and in two.
#include <string>

#include <fmt/format.h>

#include "hw/document.h"
#include "tests/catch.h"
#include "tests/process.h"

namespace moebius {
namespace {

double step_seconds(const std::string& scenario_json) {
  const test::Scratch scratch;
  const auto run = test::run_moebius("run " + scratch.write("s.json", scenario_json) + " --json");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return parse_document(run.out, "report").root.find("step_time_s")->number;
}

// Seventeen layers of DeepSeek-V3 on 8 H800, whose clock falls under such products.
double skewed_seconds(bool fold, const std::string& popularity) {
  return step_seconds(fmt::format(
      R"({{"moebius": 1, "kind": "training", "name": "skewed",
      "model": {{"base": "deepseek-v3", "layers": 17, "first_dense": 1, "mtp_layers": 0}},
      "cluster": {{"pools": [{{"name": "a", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 1}}],
                   "fabric": {{"type": "multi-plane-fat-tree", "planes": 8, "nic": "400 Gb/s"}}}},
      "plan": {{"memory": "report", "ep": {{"degree": 8}}, "fold": {}}},
      "workload": {{"sequence_length": 4096, "global_batch": 32, "micro_batch": 1,
                    "experts": {{"popularity": {}}}}}}})",
      fold, popularity));
}

std::string pool(const std::string& name, int nodes) {
  return fmt::format(R"({{"name": "{}", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": {}}})", name,
                     nodes);
}

double seconds_on(const std::string& pools) {
  return step_seconds(fmt::format(
      R"({{"moebius": 1, "kind": "training", "name": "pools", "model": {{"base": "llama-2-7b", "layers": 8}},
      "cluster": {{"pools": [{}],
                   "fabric": {{"type": "multi-plane-fat-tree", "planes": 8, "nic": "400 Gb/s"}}}},
      "plan": {{"memory": "report"}},
      "workload": {{"sequence_length": 2048, "global_batch": 64, "micro_batch": 1}}}})",
      pools));
}

}  // namespace

// The fullest member of a layer is not that of the next: a rank that stood for the fullest of each, which it
// must in time, would draw more than any board does.
TEST_CASE("skewed experts slow the clock of a folded rank no more than that of boards one by one") {
  for (const std::string popularity : {R"({"zipf": 1})", R"({"dirichlet": 1})"}) {
    INFO(popularity);
    CHECK(skewed_seconds(true, popularity) == Approx(skewed_seconds(false, popularity)).epsilon(0.005));
  }
}

// The board that draws most of sixteen sets the pace, whatever pools they are said to stand in.
TEST_CASE("two pools that are alike are one pool of as many nodes") {
  CHECK(seconds_on(pool("a", 1) + ", " + pool("b", 1)) == seconds_on(pool("a", 2)));
}

}  // namespace moebius
