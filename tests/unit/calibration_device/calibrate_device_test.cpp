// A whole calibration, of a device that is a law.
#include "workloads/calibration/device/calibrate_device.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/process.h"
#include "tests/unit/calibration_device/fake_bench.h"
#include "workloads/cost/cost_source.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

using test::Scratch;

struct Bench {
  std::unique_ptr<FakeBench> owned = std::make_unique<FakeBench>();
  FakeBench& fake = *owned;
};

CalibrationReport calibrate_law(double noise, const std::string& out) {
  Bench bench;
  bench.fake.noise = noise;
  return calibrate_device(made_up_device(std::move(bench.owned)), {.out = out, .budget = 1e6});
}

const ProfileTable& table_named(const Profile& profile, const std::string& name) {
  for (const ProfileTable& table : profile.tables)
    if (table.name == name) return table;
  FAIL("no table " << name);
  return profile.tables.front();
}

// Shapes that no case of the plan has.
std::vector<CostQuery> unseen_queries() {
  return {{.kind = OpKind::kGemm, .shape = {.m = 48, .n = 96, .k = 300}, .cores = 1},
          {.kind = OpKind::kGemm, .shape = {.m = 200, .n = 700, .k = 700}, .dtype = DType::kFp8, .cores = 1},
          {.kind = OpKind::kGemmWgrad, .shape = {.m = 300, .n = 200, .k = 100}, .cores = 1},
          {.kind = OpKind::kNorm, .shape = {.m = 40, .n = 300}, .cores = 1},
          {.kind = OpKind::kAdam, .shape = {.m = 100000, .n = 1}, .dtype = DType::kFp32, .cores = 1}};
}

TEST_CASE("a law that is calibrated comes back within the error that its tables state") {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.path("profiles"));
  const CalibrationReport report = calibrate_law(0.02, scratch.path("profiles/made-up.json"));
  CHECK(report.refused == 0);
  CHECK(report.left_out == 0);
  CHECK(report.missing.empty());
  const auto source = make_cost_source(report.profile.reference, scratch.path(""));
  CHECK_THAT(source->description(), Catch::Contains("profile made-up (moebius-"));
  for (const CostQuery& query : unseen_queries()) {
    const Cost cost = source->cost(query);
    INFO(to_string(query.kind) << " " << query.shape.m << " " << query.shape.n << " " << query.shape.k << ": "
                               << cost.seconds << " instead of " << law_seconds(query));
    CHECK(cost.origin == Origin::kInterpolated);
    const auto kind = std::string(to_string(query.kind));
    const HeldOut& stated =
        table_named(report.profile, kind + " " + std::string(to_string(query.dtype))).held_out;
    // Of an op not chosen by the rows kept out no more can be promised than their worst.
    CHECK(std::abs(cost.seconds / law_seconds(query) - 1) <= std::max(0.05, stated.worst));
  }
}

TEST_CASE("every table of a calibration states device, spread, fit and rows kept out") {
  const Scratch scratch;
  const Profile profile = calibrate_law(0.02, scratch.path("p.json")).profile;
  REQUIRE(profile.device);
  CHECK(profile.device->clocks == "2000 MHz .. 2000 MHz");
  CHECK(profile.sources.front().text == "moebius 0.1.0 on a made-up core, none 1.0");
  for (const ProfileTable& table : profile.tables) {
    INFO(table.name);
    CHECK(table.cores == 1);
    CHECK(table.sustained);
    CHECK(table.spread == Approx(0.01));  // of every measurement of the fake
    CHECK(table.fit_error < 0.25);
  }
  const HeldOut& products = table_named(profile, "gemm bf16").held_out;
  CHECK(products.rows > 10);
  CHECK(products.median < 0.2);
  // Uneven experts take as long as even ones of as many rows, by the law.
  REQUIRE(table_named(profile, "grouped_gemm bf16").held_out.parts.size() == 1);
  CHECK(table_named(profile, "grouped_gemm bf16").held_out.parts[0].name == "uneven loads");
  // The file says what the struct says.
  const Profile read = profile_from(load_document(scratch.path("p.json")));
  CHECK(to_json(read) == to_json(profile));
}

TEST_CASE("peaks of an unknown device are the best that was seen: nothing measured is above them") {
  const Scratch scratch;
  const Accelerator chip = calibrate_law(0, scratch.path("p.json")).profile.reference;
  // The largest products have 2 * 256 * 2048 * 2048 operations, whose 107 ms leave 3 us and some for the
  // bytes.
  CHECK(chip.peak_of(DType::kBf16).value == Approx(20e9).epsilon(0.05));
  CHECK(chip.peak_of(DType::kFp8).value == Approx(10e9).epsilon(0.05));
  CHECK(chip.memory_rate.value == Approx(5e9).epsilon(0.01));
  CHECK(chip.memory_efficiency == Approx(1).epsilon(0.01));
  CHECK(chip.kernel_floor.ns >= 1000);  // 1 us and a few bytes
  CHECK(chip.kernel_floor.ns < 1100);
}

TEST_CASE("a calibration that was interrupted goes on where it stopped, and measures nothing twice") {
  const Scratch scratch;
  const std::string out = scratch.path("p.json");
  Bench first;
  first.fake.at_call = [](int call) {
    if (call == 100) std::raise(SIGINT);
  };
  FakeBench& fake = first.fake;
  const DeviceUnderTest stopped = made_up_device(std::move(first.owned));
  const CalibrationReport cut = calibrate_device(stopped, {.out = out, .budget = 1e6});
  CHECK(cut.interrupted);
  CHECK(fake.calls == 100);
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK(std::filesystem::exists(cut.journal));
  Bench second;
  FakeBench& rest = second.fake;
  const DeviceUnderTest again = made_up_device(std::move(second.owned));
  const CalibrationReport whole = calibrate_device(again, {.out = out, .budget = 1e6});
  CHECK(whole.resumed == 100);
  CHECK(whole.measured == rest.calls + 100);
  CHECK(std::filesystem::exists(out));
  CHECK_FALSE(std::filesystem::exists(whole.journal));
}

TEST_CASE("when the budget is spent the finer half is left out, and the tables say so") {
  const Scratch scratch;
  Bench bench;
  DeviceUnderTest device = made_up_device(std::move(bench.owned));
  device.budget = 1e-9;
  const CalibrationReport report = calibrate_device(device, {.out = scratch.path("p.json")});
  CHECK(report.left_out > report.measured / 2);
  CHECK(report.missing.empty());  // what matters most is measured all the same
  CHECK_THAT(table_named(report.profile, "gemm bf16").note, Catch::Contains("left out: the time was spent"));
}

TEST_CASE("a budget that does not hold what no profile goes without is refused, and what it held is kept") {
  const Scratch scratch;
  const std::string out = scratch.path("p.json");
  Bench bench;
  const DeviceUnderTest device = made_up_device(std::move(bench.owned));
  CHECK_THROWS_WITH(
      calibrate_device(device, {.out = out, .budget = 1e-9}),
      Catch::Matches(
          R"(--budget: expected about \d+ seconds or more for the \d+ ops that no profile goes )"
          R"(without, found 1e-09, which held \d+: the same command with more goes on from there)"));
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK(std::filesystem::exists(out + ".journal.jsonl"));
  CHECK(calibrate_device(device, {.out = out, .budget = 1e6}).missing.empty());
}

TEST_CASE("a kind that the device does not have is missing with the device's own sentence") {
  const Scratch scratch;
  Bench bench;
  bench.fake.refuses[OpKind::kAdam] = "no Adam here";
  const CalibrationReport report = calibrate_device(made_up_device(std::move(bench.owned)),
                                                    {.out = scratch.path("p.json"), .budget = 1e6});
  CHECK(report.missing == std::vector<std::string>{
                              "adam fp32, weights in 8 bits: no Adam here", "adam fp32: no Adam here",
                              "adam bf16, weights in 8 bits: no Adam here", "adam bf16: no Adam here",
                              "adam fp32, weights in 8 bits hot: no Adam here", "adam fp32 hot: no Adam here",
                              "adam bf16, weights in 8 bits hot: no Adam here",
                              "adam bf16 hot: no Adam here"});
  // Of both types and states five points and four tests; where weights are rounded, of two shares.
  CHECK(report.refused == 92);
  CHECK_THAT(to_text(report), Catch::Contains("no table: adam fp32: no Adam here"));
}

TEST_CASE("the report names device, tables, transfers and neighbours") {
  const Scratch scratch;
  const std::string text = to_text(calibrate_law(0.02, scratch.path("p.json")));
  CHECK_THAT(text, Catch::Contains("a made-up core (none 1.0)") && Catch::Contains("gemm bf16") &&
                       Catch::Contains("exchange") && Catch::Contains("latency   1.90 us") &&
                       Catch::Contains("gemm beside copies: 1.20 ms instead of 1.00 ms"));
}

}  // namespace
}  // namespace moebius
