// Power and quantise tables of the kernel database, written as its files are.
#include <fmt/format.h>

#include <filesystem>

#include "hw/catalog.h"
#include "models/layer_math.h"
#include "tests/process.h"
#include "tests/unit/calibration/stored_gzip.h"
#include "workloads/calibration/harvest.h"
#include "workloads/cost/analytic.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

class Tables {
 public:
  Tables() { std::filesystem::create_directories(directory_ / "kernels"); }

  void write(const char* table, const std::string& text) const {
    write_stored_gzip((directory_ / "kernels" / table).string(), text);
  }
  const std::filesystem::path& directory() const { return directory_; }

 private:
  test::Scratch scratch_;
  std::filesystem::path directory_ = scratch_.path("data");
};

constexpr double kIdle = 130, kJoulePerByte = 9e-11, kJoulePerFlop = 6e-13, kLimit = 700;

// GEMMs at a fifth to nine tenths of their bounds; one reading in nine shows half, as after an idle board.
std::string power_table(const Accelerator& chip) {
  std::string text = "system,backend,version,kernel,dtype,n,k,m,latency_us,power_w,power_limit_w\n";
  const AnalyticModel model(chip);
  int row = 0;
  for (const int n : {4096, 8192, 16384, 65536})
    for (const int k : {4096, 8192, 16384, 65536})
      for (const int m : {1, 16, 64, 256, 1024, 4096, 16384}) {
        const CostQuery query{.kind = OpKind::kGemm, .shape = {.m = m, .n = n, .k = k}, .cores = 132};
        const Estimate estimate = model.estimate(query, Clocks::kSustained);
        const double us = 1e6 * estimate.seconds / (0.2 + 0.1 * (row % 8));
        const double watts =
            std::min(kLimit, kIdle + (kJoulePerByte * estimate.memory_bytes +
                                      kJoulePerFlop * op_flops(query.kind, query.shape).value) /
                                         (us * 1e-6));
        const double read = row++ % 9 == 4 ? kIdle + 0.5 * (watts - kIdle) : watts;
        text += fmt::format("h200_sxm,vllm,1,x,bfloat16,{},{},{},{},{},{}\n", n, k, m, us, read, kLimit);
      }
  for (int i = 0; i < 20; ++i)
    text += fmt::format("h200_sxm,vllm,1,x,bfloat16,128,128,{},3,{},{}\n", i + 1, kIdle, kLimit);
  return text;
}

ProfilePower power_of(const std::filesystem::path& directory, const Accelerator& chip) {
  Harvest harvest{chip, directory, {}};
  harvest.profile.tables.resize(1);  // power comes with kernels only
  read_power(harvest);
  return harvest.profile.power;
}

TEST_CASE("energies are found again among readings that lag, and rows at the limit ask for no less") {
  const Accelerator chip = Catalog().accelerator("h200-sxm");
  const Tables tables;
  tables.write("gemm_power.csv.gz", power_table(chip));
  const ProfilePower power = power_of(tables.directory(), chip);
  CHECK(power.limit == kLimit);
  CHECK(power.idle == kIdle);
  CHECK(power.joule_per_byte == Approx(kJoulePerByte).epsilon(0.02));
  CHECK(power.joule_per_flop[static_cast<std::size_t>(DType::kBf16)] == Approx(kJoulePerFlop).epsilon(0.02));
  CHECK(power.joule_per_flop[static_cast<std::size_t>(DType::kFp8)] == 0);
  CHECK(power.carried_from.empty());
  CHECK(power.held_out.rows > 5);
  CHECK(power.held_out.median < 0.02);
  REQUIRE(power.rejected.size() == 1);
  CHECK(power.rejected[0].reason == "kernels under 500 us: the reading still shows what ran before");
}

TEST_CASE("a chip of the same architecture gets the energies, its own idle power and no error") {
  const Tables tables;
  tables.write("gemm_power.csv.gz", power_table(Catalog().accelerator("h200-sxm")));
  const Accelerator chip = Catalog().accelerator("h20-sxm");
  const ProfilePower power = power_of(tables.directory(), chip);
  CHECK(power.carried_from == "h200-sxm");
  CHECK(power.limit == chip.power.value);
  CHECK(power.idle == Approx(kIdle * chip.power.value / kLimit).epsilon(1e-3));
  CHECK(power.joule_per_byte == Approx(kJoulePerByte).epsilon(0.02));
  CHECK(power.held_out.rows == 0);
  CHECK(power_of(tables.directory(), Catalog().accelerator("l40s")).limit == 0);
}

TEST_CASE("a board that draws nothing is an error of its row") {
  const Accelerator chip = Catalog().accelerator("h200-sxm");
  const std::string head = "system,backend,version,kernel,dtype,n,k,m,latency_us,power_w,power_limit_w\n";
  for (const char* watts : {"0", "-600"}) {
    const Tables tables;
    tables.write("gemm_power.csv.gz",
                 head + fmt::format("h200_sxm,vllm,1,x,bfloat16,8192,8192,8192,9000,{},700\n", watts));
    CHECK_THROWS_WITH(power_of(tables.directory(), chip),
                      Catch::EndsWith(fmt::format(
                          "gemm_power.csv.gz:2: power_w: expected more than 0 W, found \"{}\"", watts)));
  }
}

// One pass at 2 TB/s, GEMMs that take it and 5 us; the second framework's passes take ten times as long.
TEST_CASE("a stack's quantise rows that are longer than its whole GEMMs are left out with the reason") {
  std::string passes = "system,backend,version,kernel,op,dtype,k,m,latency_us\n",
              gemms = "system,backend,version,kernel,dtype,n,k,m,latency_us\n";
  for (const std::string backend : {"sglang", "trtllm"})
    for (const int k : {2048, 4096})
      for (const int m : {64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}) {
        const double us = 2 + 3.03 * m * k / 2e12 * 1e6, alone = backend == "sglang" ? 10 * us : us;
        passes += fmt::format("h100_sxm,{},1,x,scale_matrix,fp8,{},{},{}\n", backend, k, m, alone);
        passes += fmt::format("h100_sxm,{},1,x,compute_scale,fp8,{},{},{}\n", backend, k, m, 2 * us);
        gemms += fmt::format("h100_sxm,{},1,x,fp8,128,{},{},{}\n", backend, k, m, us + 5);
      }
  const Tables tables;
  tables.write("quantize.csv.gz", passes);
  tables.write("gemm.csv.gz", gemms);
  const Accelerator chip = Catalog().accelerator("h100-sxm");
  Harvest harvest{chip, tables.directory(), {}};
  read_quantise_kernels(harvest, "h100_sxm");
  REQUIRE(harvest.profile.tables.size() == 2);
  const ProfileTable &one = harvest.profile.tables[0], &two = harvest.profile.tables[1];
  CHECK(one.stack == "trtllm-1");
  CHECK(two.stack == "trtllm-1+fp8-rowwise");
  CHECK(one.kinds == std::vector<std::string>{"quantise"});
  CHECK(two.microseconds.back() == Approx(3 * one.microseconds.back()).epsilon(0.05));
  REQUIRE(one.rejected.size() == 1);
  CHECK(one.rejected[0].rows == 20);
  CHECK_THAT(one.rejected[0].reason, Catch::Contains("sglang-1 times it alone: at 20 of 20 shapes longer"));
}

}  // namespace
}  // namespace moebius
