// The host, measured for a moment: every kind runs, and its profile answers.
#include "real/calibration/host_device.h"

#include <chrono>
#include <ctime>
#include <filesystem>

#include "real/calibration/host_figures.h"
#include "real/calibration/storage_figures.h"
#include "tests/process.h"
#include "workloads/calibration/device/calibrate_device.h"
#include "workloads/cost/cost_source.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

using test::Scratch;

// One point of everything.
CaseSizes one_point() {
  return {.m = {8},
          .n = {32},
          .k = {16},
          .experts = {2},
          .expert_rows = {1, 4, 8},
          .expert_n = {32},
          .expert_k = {16},
          .heads = {{2, 1, 24, 16}},
          .other_heads = {{4, 4, 8, 8}},
          .sequences = {2},
          .queries = {8},
          .decodes = {2},
          .keys = {16},
          .latent = {},
          .stream_rows = {8},
          .widths = {32},
          .vocabularies = {64},
          .parameters = {256},
          .most_elements = 1 << 16};
}

TEST_CASE("the host computes every kind of the plan, and its profile is its cost source") {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.path("profiles"));
  const std::string out = scratch.path("profiles/host.json");
  DeviceUnderTest host = host_under_test(out);
  host.sizes = one_point();
  OpBench& bench = *host.bench;
  host.measure_figures = [&](const FiguresTime&) {
    return measure_host_figures(bench, scratch.path("no such directory"),
                                {.seconds = 0.1});  // nor a disk to fill
  };
  host.budget = 0.1;
  const CalibrationReport report = calibrate_device(host, {.out = out});
  CHECK(report.refused == 0);
  CHECK(report.missing.empty());
  REQUIRE(report.profile.device);
  CHECK(report.profile.accelerator == "host");
  CHECK(report.profile.device->launch > 0);
  CHECK(report.profile.device->transfer(kExchange) != nullptr);
  CHECK(report.profile.device->transfer(kOnDevice) != nullptr);
  CHECK(report.profile.device->transfer(kStorageRead) == nullptr);
  const auto source = make_cost_source(report.profile.reference, scratch.path(""));
  const Cost cost = source->cost({.kind = OpKind::kGemm, .shape = {.m = 8, .n = 32, .k = 16}, .cores = 1});
  CHECK(cost.origin == Origin::kMeasured);
  CHECK(cost.seconds > 0);
}

TEST_CASE("a disk that a quarter of the budget does not hold is left out, so that the ops have the rest") {
  const Scratch scratch;
  FiguresTime all{.seconds = 0.1, .budget = 10};
  all.start -= std::chrono::seconds(3);  // that the transfers took
  CHECK_FALSE(all.spent());
  const FiguresTime time = all.last_part(0.25);
  DeviceFigures figures;
  measure_storage(scratch.path(""), time, figures);
  CHECK(time.spent());
  CHECK(figures.transfers.empty());
  CHECK(figures.left_out ==
        "the disk: 2.5 s of the budget of 10 s, for all that comes before the ops, did not hold it");
}

TEST_CASE("a budget that ends within links and copies is refused there and then") {
  const Scratch scratch;
  const DeviceUnderTest host = host_under_test(scratch.path("host.json"));
  const std::clock_t start = std::clock();  // of the processor, whatever else runs
  CHECK_THROWS_WITH(calibrate_device(host, {.out = scratch.path("host.json"), .budget = 0.05}),
                    "--budget: expected more seconds for the launches, transfers and the disk that come "
                    "before the ops, found 0.05, which did not hold them");
  CHECK(std::clock() - start < CLOCKS_PER_SEC);
}

TEST_CASE("a file stands in its directory, a name alone in the current one") {
  CHECK(directory_of("a/b/c.json") == "a/b");
  CHECK(directory_of("c.json") == ".");
}

}  // namespace
}  // namespace moebius
