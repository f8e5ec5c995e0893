// What an unmeasured chip or site costs in trust.
#include "workloads/calibration/page/neighbour_error.h"

#include <filesystem>
#include <fstream>

#include "hw/catalog.h"
#include "tests/process.h"
#include "workloads/calibration/page/published_kernels.h"
#include "workloads/cost/measured_table.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

// GEMMs of weight matrices of several widths that take `slower` times as long as the model says of the chip.
Profile profile_of(const Accelerator& chip, double slower) {
  ProfileTable table;
  table.name = "dense GEMM";
  table.kinds = {"gemm"};
  table.dtype = DType::kBf16;
  table.stack = "made-up";
  table.cores = chip.cores;
  table.site_keys = {ProfileKey::kN, ProfileKey::kK};
  table.axes = {{ProfileKey::kM, {64, 1024, 8192}}};
  const AnalyticModel model(chip);
  for (const double n : {1024.0, 2048.0, 4096.0, 8192.0, 16384.0}) {
    table.sites.push_back({n, 4096});
    for (const double m : table.axes.front().points) {
      const CostQuery query =
          query_of(table, OpKind::kGemm, shape_in(table, OpKind::kGemm, {n, 4096}, std::vector{m}));
      table.microseconds.push_back(
          static_cast<float>(slower * 1e6 * model.estimate(query, Clocks::kBurst).seconds));
    }
  }
  Profile profile;
  profile.accelerator = chip.id;
  profile.reference = chip;
  profile.tables = {table};
  return profile;
}

TEST_CASE("a neighbour's kernels carry over as far as they are from the model, and the rest is the error") {
  const Catalog catalog;
  const Accelerator h200 = catalog.accelerator("h200-sxm");
  const Profile chip = profile_of(h200, 1.5), same = profile_of(catalog.accelerator("h100-sxm"), 1.5),
                faster = profile_of(catalog.accelerator("h100-sxm"), 1.2);
  const NeighbourError none = told_by_neighbour(chip.tables.front(), h200, same);
  CHECK(none.values == 15);
  CHECK(none.median < 1e-4);
  // 1.2 / 1.5: a fifth too fast, wherever arithmetic and memory of the two chips stand.
  const NeighbourError fifth = told_by_neighbour(chip.tables.front(), h200, faster);
  CHECK(fifth.median == Approx(0.2).epsilon(0.001));
  CHECK(fifth.bias == Approx(-0.2).epsilon(0.001));
  CHECK(told_by_model(chip.tables.front(), h200).bias == Approx(1 / 1.5 - 1).epsilon(0.001));
}

TEST_CASE("a kernel that the neighbour never ran is not told") {
  const Catalog catalog;
  const Accelerator h200 = catalog.accelerator("h200-sxm");
  Profile donor = profile_of(catalog.accelerator("h100-sxm"), 1);
  donor.tables.front().dtype = DType::kFp8;
  CHECK(told_by_neighbour(profile_of(h200, 1).tables.front(), h200, donor).values == 0);
}

TEST_CASE("a site kept out is told by the others") {
  const Accelerator h200 = Catalog().accelerator("h200-sxm");
  Profile profile = profile_of(h200, 1.3);
  const NeighbourError even = told_by_other_sites(profile.tables.front(), h200);
  CHECK(even.values == 15);
  CHECK(even.p90 < 1e-4);
  // One site is twice as slow as its neighbours: told without it, it comes out at half its time.
  for (int i = 6; i < 9; ++i) profile.tables.front().microseconds[static_cast<std::size_t>(i)] *= 2;
  CHECK(told_by_other_sites(profile.tables.front(), h200).p90 == Approx(0.5).epsilon(0.01));
  profile.tables.front().sites.resize(4);
  profile.tables.front().microseconds.resize(12);
  CHECK(told_by_other_sites(profile.tables.front(), h200).values == 0);
}

TEST_CASE("a published figure is told in its own unit, and its error is that of the time") {
  const test::Scratch scratch;
  const std::string head =
      "accelerator,op,dtype,m,n,k,groups,heads,kv_heads,head_dim,v_dim,kv,stack,unit,value,fitted,source\n";
  std::ofstream(scratch.path("p.csv")) << head << "h200,gemm,bf16,1024,4096,4096,,,,,,,,us,100,,a\n"
                                       << "h200,gemm,bf16,1024,4096,4096,,,,,,,,tflops,343.6,,b\n"
                                       << "h200,gemm,bf16,,,,,,,,,,,best_tflops,989,yes,c\n";
  const Catalog catalog;
  const auto kernels = read_published_kernels(scratch.path("p.csv"), catalog);
  REQUIRE(kernels.size() == 3);
  CHECK(!kernels[0].fitted);
  CHECK(kernels[2].fitted);
  const std::vector<Profile> profiles = {profile_of(catalog.accelerator("h200-sxm"), 1.5)};
  const ToldKernel time = told_kernel(kernels[0], catalog, profiles);
  CHECK(time.by_profile);
  CHECK(time.time_error == Approx(time.value / 100 - 1));
  // 2 x 1024 x 4096 x 4096 operations in 100 us are 343.6 TFLOP/s: the same kernel, the same error.
  CHECK(told_kernel(kernels[1], catalog, profiles).time_error == Approx(time.time_error).epsilon(0.001));
  CHECK(told_kernel(kernels[2], catalog, {}).by_profile == false);
  CHECK(told_kernel(kernels[2], catalog, {}).time_error > 0);  // nothing reaches the peak
  std::ofstream(scratch.path("q.csv")) << head << "h200,gemm,bf16,1,1,1,,,,,,,,furlongs,1,,d\n";
  CHECK_THROWS_WITH(
      read_published_kernels(scratch.path("q.csv"), catalog),
      Catch::Contains("q.csv:2: unit: expected one of us, tflops, best_tflops, gbps, found \"furlongs\""));
}

}  // namespace
}  // namespace moebius
