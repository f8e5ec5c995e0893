// What it costs to set up the machines of a large cluster: recorded, never asserted.
#include <catch2/catch.hpp>

#include "hw/catalog.h"
#include "hw/cluster.h"
#include "hw/fabric/figures.h"
#include "tests/perf/process_use.h"
#include "tests/process.h"
#include "workloads/report/report.h"

using namespace moebius;

TEST_CASE("a platform of 100,000 devices is set up by arithmetic") {
  const double start = cpu_seconds(), before = resident_megabytes();
  const Catalog catalog;
  const Pool pool{"all", catalog.accelerator("h100-sxm"), catalog.node("hgx-8"), 12500};
  const Cluster cluster = build_cluster({pool}, catalog.fabric("baidu-hpn"), {});
  REQUIRE(cluster.fabric.num_devices() == 100000);
  const double built = cpu_seconds();
  const FabricFigures figures = figures_of(cluster.fabric);
  // 8 planes of leaves of 64 nodes: 12,500 / 64 = 195.3.
  REQUIRE(figures.tiers.front().switches == 8 * 196);
  WARN("cluster and fabric: " << built - start << " s of CPU, " << resident_megabytes() - before
                              << " MB more; switches, bisection and ways of all devices: "
                              << cpu_seconds() - built << " s");
}

TEST_CASE("a run on a platform of 100,000 devices costs little more than one on its devices in use") {
  const auto run =
      test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) +
                        "/scenarios/smoke/allreduce-1024.json --json "
                        "--set /cluster/pools/0/nodes=12500 --set /cluster/fabric/type=baidu-hpn");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  WARN("all-reduce of 1,024 of 100,000 devices: " << *report_value(run.out, "cpu_s") << " s of CPU, "
                                                  << *report_value(run.out, "max_rss_bytes") * 1e-6 << " MB");
}
