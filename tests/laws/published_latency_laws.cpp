// End-to-end latencies of 64 B as they are published (Insights into DeepSeek-V3, ISCA 2025, table of 64 B
// latencies, CPU side): InfiniBand 2.8 us within a leaf and 3.7 us across leaves, RoCE 3.6 and 5.6 us, NVLink
// 3.33 us. The fabric's constants are made of the first four; NVLink's follows from what was measured
// elsewhere: a copy lasts as long as the shortest kernel (2.55 us on an H100) and a crossing of the switch
// 0.8 us.
#include <catch2/catch.hpp>

#include <string>

#include <fmt/format.h>

#include "tests/process.h"
#include "workloads/report/report.h"

using namespace moebius;

namespace {

// A send of 64 B between two devices on neighbouring nodes, or of one node.
double send_seconds(const std::string& fabric, int nodes, int leaf_ports) {
  const int width = nodes == 1 ? 8 : 1;
  const std::string node =
      fmt::format(R"({{"base":"hgx-8","accelerators":{0},"nics":{0},"rails":{0}}})", width);
  const auto run = test::run_moebius(fmt::format(
      "run {}/scenarios/smoke/allreduce-1024.json --json --set /workload/operation=send-recv --set "
      "/workload/algorithm=auto --set /workload/ranks=2 "
      "--set '/workload/bytes=64 B' --set /cluster/pools/0/nodes={} --set '/cluster/pools/0/node={}' "
      "--set '/cluster/pools/0/accelerator=h800-sxm' --set /cluster/fabric/type={} "
      "--set /cluster/fabric/leaf_ports={}",
      MOEBIUS_SOURCE_DIR, nodes, node, fabric, leaf_ports));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return *report_value(run.out, "collective.time_s");
}

}  // namespace

TEST_CASE("64 B over InfiniBand take 2.8 us within a leaf and 3.7 us across leaves") {
  CHECK(send_seconds("rail-optimised-clos", 2, 32) == Approx(2.8e-6).margin(0.3e-6));
  CHECK(send_seconds("rail-optimised-clos", 2, 1) == Approx(3.7e-6).margin(0.3e-6));
}

TEST_CASE("64 B over RoCE take 3.6 us within a leaf and 5.6 us across leaves") {
  CHECK(send_seconds("rail-optimised-clos-roce", 2, 32) == Approx(3.6e-6).margin(0.3e-6));
  CHECK(send_seconds("rail-optimised-clos-roce", 2, 1) == Approx(5.6e-6).margin(0.3e-6));
}

TEST_CASE("64 B over NVLink take 3.33 us, of which a crossing is under 1 us") {
  CHECK(send_seconds("rail-optimised-clos", 1, 32) == Approx(3.33e-6).margin(0.3e-6));
}
