// Laws of tiers from data sheets and from measurements.
#include "workloads/serving/kv/tier_law.h"

#include "hw/catalog.h"
#include "hw/error.h"
#include "tests/catch.h"
#include "tests/drive_curve.h"

namespace moebius::kv {
namespace {

using namespace literals;

TEST_CASE("the depth of a measured curve stands in its name") {
  CHECK(depth_of("ssd read", "ssd read") == 1);
  CHECK(depth_of("ssd read x8", "ssd read") == 8);
  CHECK(depth_of("ssd write x8", "ssd read") == 0);
  CHECK(depth_of("ssd read ahead", "ssd read") == 0);
  CHECK(depth_of("ssd read x8b", "ssd read") == 0);
  CHECK(depth_of("ssd read x0", "ssd read") == 0);
}

TEST_CASE("a disk of the catalog reads as its data sheet says") {
  const TierLaw law = storage_law(Catalog("").storage("nvme-gen5"));
  CHECK(law.read.rate.value == 13e9);
  CHECK(law.read.latency == 85_us);
  CHECK(law.read.work(13e6) == Approx(1e-3));  // a large piece by the rate
  CHECK(law.read.work(4096) == Approx(4e-7));  // a small one by 2.5 million operations a second
  CHECK(law.write.work(6.6e6) == Approx(1e-3));
  CHECK_FALSE(law.duplex);
}

TEST_CASE("a measured disk has the latency of depth 1 and the best rates of any depth") {
  const std::vector<TransferCurve> curves{test::drive_curve("ssd read", {50e-6, 1e-3}, 45e-6),
                                          test::drive_curve("ssd read x8", {80e-6, 4e-3}, 60e-6),
                                          test::drive_curve("ssd write", {20e-6, 2e-3}, 10e-6)};
  const TierLaw law = measured_storage_law(curves);
  CHECK(law.read.latency == 45_us);
  CHECK(law.read.operations == Approx(1e5));           // 8 / 80 us
  CHECK(law.read.rate.value == Approx(2097152000.0));  // 8 x 1 MiB / 4 ms
  CHECK(law.write.operations == Approx(5e4));
}

TEST_CASE("a disk of which only writes were measured has no law") {
  const std::vector<TransferCurve> curves{test::drive_curve("ssd write", {20e-6, 2e-3}, 10e-6)};
  CHECK_THROWS_WITH(measured_storage_law(curves),
                    "no curve \"ssd read\" among what was measured of the disk");
}

}  // namespace
}  // namespace moebius::kv
