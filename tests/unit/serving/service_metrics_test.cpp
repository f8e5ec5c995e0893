// What is counted of finished requests.
#include "workloads/serving/system/service_metrics.h"

#include "tests/catch.h"

namespace moebius {

TEST_CASE("tokens that came with a request were not made here") {
  ServiceMetrics metrics({ServiceGoal{}});
  RequestMoments request{};
  request.input = 100, request.output = 5, request.brought = 1;
  request.admitted = request.first_token = request.handed_over = Time{1'000};
  request.last_token = Time{5'000};
  metrics.submitted(0, request.arrival);
  metrics.finished(request);
  CHECK(metrics.classes()[0].output == 4);
  CHECK(metrics.classes()[0].completed == 1);
}

}  // namespace moebius
