// Boards at their power limit, folded and one by one.
#include <string>

#include <fmt/format.h>

#include "hw/document.h"
#include "tests/catch.h"
#include "tests/process.h"

namespace moebius {
namespace {

// Three layers of DeepSeek-V3 on 8 H800, whose clock falls under such products.
double step_seconds(bool fold, const std::string& popularity) {
  const test::Scratch scratch;
  const std::string scenario =
      scratch.write("s.json", fmt::format(
                                  R"({{"moebius": 1, "kind": "training", "name": "skewed",
      "model": {{"base": "deepseek-v3", "layers": 3, "first_dense": 1, "mtp_layers": 0}},
      "cluster": {{"pools": [{{"name": "a", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 1}}],
                   "fabric": {{"type": "multi-plane-fat-tree", "planes": 8, "nic": "400 Gb/s"}}}},
      "plan": {{"memory": "report", "ep": {{"degree": 8}}, "fold": {}}},
      "workload": {{"sequence_length": 4096, "global_batch": 32, "micro_batch": 1,
                    "experts": {{"popularity": {}}}}}}})",
                                  fold, popularity));
  const auto run = test::run_moebius("run " + scenario + " --json");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return parse_document(run.out, "report").root.find("step_time_s")->number;
}

}  // namespace

// The fullest member of a layer is not that of the next: a rank that stood for the fullest of each, which it
// must in time, would draw more than any board does.
TEST_CASE("skewed experts slow the clock of a folded rank no more than that of boards one by one") {
  for (const std::string popularity : {R"({"zipf": 1})", R"({"dirichlet": 1})"}) {
    INFO(popularity);
    CHECK(step_seconds(true, popularity) == Approx(step_seconds(false, popularity)).epsilon(0.005));
  }
}

}  // namespace moebius
