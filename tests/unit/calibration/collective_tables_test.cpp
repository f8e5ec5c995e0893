#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "hw/catalog.h"
#include "workloads/calibration/links/error_table.h"
#include "workloads/calibration/links/fit_links.h"

using namespace moebius;

namespace {

const std::string kData = MOEBIUS_SOURCE_DIR "/../shared/data";

bool has_tables() {
  if (std::filesystem::exists(kData + "/kernels/nccl.csv.gz")) return true;
  WARN("skipped: the measured tables are not beside the project (../shared/data)");
  return false;
}

}  // namespace

TEST_CASE(
    "collectives that no constant was fitted to are predicted within 8 % at the median and 25 % at the 95th "
    "percentile") {
  if (!has_tables()) return;
  const auto rows = read_measured_collectives(kData, Catalog());
  const CollectiveErrors errors = collective_errors(rows, shipped_collectives());
  std::cout << collective_error_table(rows, shipped_collectives()) << errors.errors.size()
            << " rows scored: median " << 100 * errors.at(0.5) << " %, 95th percentile "
            << 100 * errors.at(0.95) << " %; " << errors.stand_off.size() << " stand off their neighbours, "
            << errors.eager << " were launched one by one\n";
  CHECK(errors.errors.size() > 4000);
  CHECK(errors.at(0.5) < 0.08);
  CHECK(errors.at(0.95) < 0.25);
  // Few enough that leaving them out hides no size or operation.
  CHECK(errors.stand_off.size() < rows.size() / 40);
  for (const MeasuredCollective* row : errors.stand_off)
    std::cout << "stands off: " << row->accelerator << " " << row->family << " " << to_string(row->call.kind)
              << " " << row->dtype << " " << row->call.devices << " devices, " << row->call.bytes << " B, "
              << row->seconds * 1e6 << " us\n";
}

TEST_CASE("the shipped constants of collectives are those that the tables give") {
  if (!has_tables()) return;
  const CollectiveConstants fitted = fit_links(read_measured_collectives(kData, Catalog()), Catalog());
  std::ifstream file(MOEBIUS_SOURCE_DIR "/hw/catalog/collectives.json");
  const std::string shipped((std::istreambuf_iterator<char>(file)), {});
  CHECK(collective_constants_text(fitted) == shipped);
}

TEST_CASE("a directory without tables of collectives is an error that names them") {
  CHECK_THROWS_WITH(fit_links_file(MOEBIUS_SOURCE_DIR "/scenarios", Catalog(), "unused"),
                    Catch::Contains("expected kernels/nccl.csv.gz or kernels/custom_allreduce.csv.gz in it"));
}
