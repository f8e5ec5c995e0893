// What lies between a host's two states of the caches.
#include "workloads/crosscheck/cache_mixture.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

// The same op, 8 x 32 elements wide or 8 x 32 x 16 of a product, in both states.
ProfileTable table_of(const std::string& kind, bool hot, float microseconds) {
  ProfileTable table;
  table.name = kind + (hot ? " hot" : "");
  table.kinds = {kind};
  table.dtype = DType::kBf16;
  table.stack = "made-up";
  table.cores = 1;
  table.sustained = true;
  table.hot = hot;
  table.axes = {{ProfileKey::kM, {8}}, {ProfileKey::kN, {32}}};
  if (kind == "gemm") table.axes.push_back({ProfileKey::kK, {16}});
  table.sites = {{}};
  table.microseconds = {microseconds};
  return table;
}

Profile both_states() {
  Profile profile;
  profile.accelerator = profile.reference.id = "host";
  profile.reference.architecture = "cpu-core";
  profile.reference.cores = 1;
  profile.reference.memory_rate = {1e12};
  profile.reference.memory_efficiency = 1;
  profile.reference.peak[static_cast<std::size_t>(DType::kBf16)] = {1e12};
  profile.tables = {table_of("gemm", false, 30), table_of("gemm", true, 10), table_of("add", false, 3),
                    table_of("add", true, 1)};
  return profile;
}

TEST_CASE("a cache holds all that fits and of more its own share") {
  CHECK(share_in_cache(1e6, 2e6) == 1);
  CHECK(share_in_cache(8e6, 2e6) == 0.25);
}

TEST_CASE("an op with weights takes the mixture of both states") {
  const Profile profile = both_states();
  const CostQuery gemm{.kind = OpKind::kGemm, .shape = {.m = 8, .n = 32, .k = 16}, .cores = 1};
  // A quarter of 10 us and three quarters of 30 us.
  CHECK(mixed_costs(profile.reference, profile, 0.25)->cost(gemm).seconds == Approx(25e-6));
  CHECK(mixed_costs(profile.reference, profile, 1)->cost(gemm).seconds == Approx(10e-6));
}

TEST_CASE("an op whose operands were just made finds them in the cache whatever else is touched") {
  const Profile profile = both_states();
  const CostQuery add{.kind = OpKind::kAdd, .shape = {.m = 8, .n = 32}, .cores = 1};
  CHECK(mixed_costs(profile.reference, profile, 0)->cost(add).seconds == Approx(1e-6));
}

TEST_CASE("exchange that is known in both states is mixed by time") {
  DeviceFigures device;
  TransferCurve hot, cold;
  hot.name = "exchange send bf16";
  hot.latency = 1e-6;
  hot.rate = 8e9;
  cold = hot;
  cold.name = cold_exchange_name(hot.name);
  cold.latency = 3e-6;
  cold.rate = 2e9;
  device.transfers = {hot, cold};
  mix_exchange(device, 0.5);
  CHECK(device.transfers[0].latency == Approx(2e-6));
  // A byte takes 1/8 ns or 1/2 ns: 5/16 ns on average.
  CHECK(device.transfers[0].rate == Approx(3.2e9));
  CHECK(device.transfers[1].rate == 2e9);
}

}  // namespace
}  // namespace moebius
