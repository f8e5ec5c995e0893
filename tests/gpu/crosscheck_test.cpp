// The schedule of a small scenario, simulated and executed on the device: ops, order and bytes agree.
#include <catch2/catch.hpp>

#include "real/cuda/cuda_run.h"
#include "sim/sim_executor.h"
#include "tests/gpu/device_tests.h"
#include "workloads/cost/cost_source.h"
#include "workloads/perform.h"

namespace moebius {
namespace {

StartedExecutor simulate(const Job& job, const Layout& layout, Recorder& recorder) {
  StartedExecutor engine;
  const std::shared_ptr<const CostSource> source =
      make_cost_source(job.scenario.cluster->pools.front().accelerator, "");
  engine.keepers.push_back(source);
  engine.executor = make_sim_executor(*job.scenario.cluster, layout, {source.get()}, recorder,
                                      {.detail = NetworkDetail::kFluid, .driver = Driver::kPlain});
  return engine;
}

StartedExecutor execute_on_device(const Job& job, const Layout& layout, Recorder& recorder) {
  return start_cuda(job, layout, recorder, {});
}

}  // namespace

TEST_CASE("what the device executes is what the simulator simulates: ops, order and bytes") {
  NEEDS_DEVICE();
  for (const char* name : {"moe-layer", "moe-4-layer"}) {
    const std::string file = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/" + name + ".json";
    Changes every_rank;
    every_rank.unfold = true;
    const Crosscheck result =
        crosscheck([&] { return read_job(file, every_rank, Library("")); }, simulate, execute_on_device, "");
    INFO(to_text(result));
    CHECK(result.same());
    CHECK(!result.groups.empty());
    CHECK(result.executor == "cuda");
  }
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
