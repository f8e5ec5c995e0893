// The schedule of a small scenario, simulated and executed on the device: ops, order and bytes agree.
#include <catch2/catch.hpp>

#include "real/cuda/cuda_run.h"
#include "tests/cross/shipped_experts.h"
#include "tests/gpu/device_tests.h"

namespace moebius {
namespace {

StartedExecutor execute_on_device(const Job& job, const Layout& layout, Recorder& recorder) {
  return start_cuda(job, layout, recorder, {});
}

}  // namespace

TEST_CASE("what the device executes is what the simulator simulates: ops, order and bytes") {
  NEEDS_DEVICE();
  const std::vector<std::string> narrow{
      "/model/hidden=64",        "/model/heads=4",           "/model/kv_heads=2",
      "/model/head_dim=16",      "/model/experts/routed=16", "/model/experts/active=2",
      "/model/experts/width=32", "/model/vocabulary=128",    "/workload/sequence_length=32"};
  for (const std::string name : {"moe-layer", "moe-4-layer", "ep-8"}) {
    const std::string file = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/" + name + ".json";
    Changes every_rank;
    every_rank.unfold = true;
    if (name == "ep-8") every_rank.sets = narrow;
    const Crosscheck result = crosscheck({[&] { return read_job(file, every_rank, Library("")); },
                                          simulate_plainly,
                                          execute_on_device,
                                          "",
                                          {},
                                          1});
    INFO(to_text(result));
    CHECK(result.same());
    CHECK(!result.groups.empty());
    CHECK(result.executor == "cuda");
  }
}

TEST_CASE("experts and caches that move on the device are joined with simulated ones op by op") {
  NEEDS_DEVICE();
  const Crosscheck result =
      crosscheck({[] { return moving_job({}, 20); }, simulate_plainly, execute_on_device, "", {}, 1});
  INFO(to_text(result));
  CHECK(result.same());
  CHECK(joined(result, OpKind::kPlaceExperts) > 0);
  CHECK(joined(result, OpKind::kSend) > 0);
}

TEST_CASE("ranks that are folded are refused in a sentence") {
  NEEDS_DEVICE();
  const std::string file = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/moe-layer.json";
  Changes fold;
  fold.sets = {"/plan/fold=true"};
  const Job folded = read_job(file, fold, Library(""));
  Recorder recorder(folded.layout(), RecorderOptions{});
  CHECK_THROWS_WITH(start_cuda(folded, folded.layout(), recorder, {}),
                    Catch::Contains("cuda executes every rank; add --set /plan/fold=false"));
}

}  // namespace moebius
