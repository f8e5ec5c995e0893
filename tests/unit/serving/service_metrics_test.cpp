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

// One request a second for 400 s, each answered after `takes` seconds of service by one server.
Backlog backlog_of(double takes) {
  ServiceMetrics metrics({ServiceGoal{}});
  std::vector<double> ends;
  double free = 0;
  std::size_t answered = 0;
  const auto answer = [&](double until) {
    for (; answered < ends.size() && ends[answered] <= until; ++answered) {
      RequestMoments request{};
      request.input = 100, request.output = 5;
      request.arrival = time_from_seconds(static_cast<double>(answered));
      request.admitted = request.first_token = request.handed_over = request.last_token =
          time_from_seconds(ends[answered]);
      metrics.finished(request);
    }
  };
  for (int i = 0; i < 400; ++i) {
    answer(i);
    metrics.submitted(0, time_from_seconds(i));
    free = std::max<double>(free, i) + takes;
    ends.push_back(free);
  }
  answer(1e9);
  return metrics.backlog();
}

// 400 s x (1 - 1/2) = 200 requests wait when the last one comes, half as many when half had come.
TEST_CASE("a service that answers fewer requests than come is told from one that keeps up") {
  CHECK(!backlog_of(0.9).grows());
  const Backlog twice = backlog_of(2);
  CHECK(twice.grows());
  CHECK(twice.submitted == 400);
  CHECK(twice.last == 201);
  CHECK(twice.earlier_submitted == 128);
  CHECK(twice.earlier == 65);
}

TEST_CASE("requests that all come at once are a batch") {
  Backlog all{.submitted = 400, .last = 400, .earlier = 128, .earlier_submitted = 128, .arriving = 0};
  CHECK(!all.grows());
}

}  // namespace moebius
