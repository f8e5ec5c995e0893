// The jobs of a cluster's queues, each alone on its own cards.
#include "tests/catch.h"
#include "workloads/job.h"

namespace moebius {
namespace {

// Shape 7 serves with tp 2, shape 4 trains with tp 4; both leave it open how many replicas there are. Pool 4
// has nodes of eight.
TEST_CASE("a plan stands on the cards of its job and on no others") {
  const Library library("");
  const Job job =
      read_job(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/study/cluster-10000-cards-30-days.json", {},
               library);
  CHECK(job.read_shape(7, 4, 2)->scenario.serving.devices() == 2);
  CHECK(job.read_shape(7, 4, 8)->scenario.serving.devices() == 8);
  CHECK(job.read_shape(4, 4, 4)->scenario.plan.ranks() == 4);
  CHECK(job.read_shape(4, 4, 16)->scenario.plan.ranks() == 16);
}

}  // namespace
}  // namespace moebius
