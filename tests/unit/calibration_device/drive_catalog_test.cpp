// A drive that was measured, as the simulator then knows it.
#include "workloads/calibration/device/drive_catalog_json.h"

#include <filesystem>

#include "hw/catalog.h"
#include "hw/error.h"
#include "tests/catch.h"
#include "tests/drive_curve.h"
#include "tests/process.h"

namespace moebius {
namespace {

using namespace literals;

DeviceFigures figures_with(std::vector<TransferCurve> curves) {
  DeviceFigures figures;
  figures.name = "a machine";
  figures.driver = "6.1";
  figures.date = "2026-11-23";
  figures.transfers = std::move(curves);
  return figures;
}

TEST_CASE("a measured drive is read from a data directory like every other") {
  const test::Scratch scratch;
  const DeviceFigures figures = figures_with({test::drive_curve("ssd read", {50e-6, 1e-3}, 45e-6),
                                              test::drive_curve("ssd read x8", {80e-6, 4e-3}, 60e-6),
                                              test::drive_curve("ssd write", {20e-6, 2e-3}, 10e-6),
                                              test::drive_curve("h2d pinned", {1e-6, 1e-5}, 1e-6)});
  save_drive_catalog(scratch.path("storage.json"), figures, scratch.path("profile.json"));
  const Storage drive = Catalog(scratch.path("")).storage(std::string(kMeasuredDrive));
  CHECK(drive.read_rate.value == Approx(2097152000.0));  // 8 x 1 MiB / 4 ms
  CHECK(drive.read_iops == Approx(1e5));                 // 8 / 80 us
  CHECK(drive.read_latency == 45_us);
  CHECK(drive.write_rate.value == Approx(524288000.0));
  CHECK(drive.write_iops == Approx(5e4));
  CHECK(drive.write_latency == 10_us);
  CHECK(drive.capacity.value == static_cast<double>(std::filesystem::space(scratch.path("")).capacity));
}

TEST_CASE("a drive of which only writes were measured makes no catalog") {
  const test::Scratch scratch;
  const DeviceFigures figures = figures_with({test::drive_curve("ssd write", {20e-6, 2e-3}, 10e-6)});
  CHECK_THROWS_WITH(save_drive_catalog(scratch.path("storage.json"), figures, scratch.path("profile.json")),
                    "no curve \"ssd read\" among what was measured of the disk");
  CHECK(std::filesystem::is_empty(scratch.path("")));
}

}  // namespace
}  // namespace moebius
