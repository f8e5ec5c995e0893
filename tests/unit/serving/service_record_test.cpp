#include <cstdio>

#include <catch2/catch.hpp>

#include "workloads/serving/system/service_record.h"

namespace moebius {
namespace {

Time at(int seconds) {
  return {std::int64_t{seconds} * 1'000'000'000};
}

RequestMoments request_of(int arrival, int end) {
  RequestMoments moments;
  moments.arrival = at(arrival);
  moments.admitted = at(arrival);
  moments.first_token = moments.handed_over = at(arrival + 1);
  moments.last_token = at(end);
  moments.input = 100;
  moments.output = 10;
  return moments;
}

}  // namespace

TEST_CASE("a series keeps a bounded number of steps whatever time passes") {
  ServiceRecord record({{"serve", 1, 8}}, {.detail = Detail::kNone});
  for (int second = 0; second < 1000; ++second)
    if (at(second) >= record.due()) record.sample(at(second), {{.waiting = second}});
  // Steps of 1 s become 2, 4, 8: 1000 s need 125 of them; each holds what its beginning showed.
  CHECK(record.series().step == at(8));
  REQUIRE(record.series().moments.size() == 125);
  for (std::size_t i = 0; i < 125; ++i)
    CHECK(record.series().moments[i][0].waiting == static_cast<std::int64_t>(8 * i));
}

TEST_CASE("a service's timeline has a lane for each instance and for requests, and can be read back") {
  ServiceRecord record({{"serve", 2, 4}}, {.detail = Detail::kSteps});
  record.sample(at(0), {{.waiting = 3, .running = 4, .pages = 5}});
  record.iteration(0, at(0), at(1), true, false, 100);
  record.iteration(1, at(0), at(2), false, true, 10);
  record.finished(request_of(0, 5));
  record.finished(request_of(2, 6));  // beside the first: another lane
  const Timeline timeline = record.take();
  const std::string path = std::tmpnam(nullptr);
  save_timeline(timeline, path);
  const MappedTimeline read(path);
  std::remove(path.c_str());
  // Two iterations, and of each request its prompt and its answer: nothing queued or moved.
  REQUIRE(read.num_spans() == 6);
  CHECK(read.fact("class 1") == "serve 1");
  CHECK(read.fact("class 2") == "requests 0");
  CHECK(read.span(0).rank_class == 0);
  CHECK(read.span(2).rank_class == 2);
  CHECK(read.span(4).rank_class == 3);
  CHECK(read.tables().fragments[read.submission_of(read.span(0)).fragment] == "prefill");
}

TEST_CASE("what does not fit in a timeline is left out and counted") {
  ServiceRecord record({{"serve", 1, 1}}, {.detail = Detail::kSteps, .max_bytes = Bytes{1000.0}});
  for (int i = 0; i < 100; ++i) record.iteration(0, at(i), at(i + 1), false, true, 1);
  CHECK(record.dropped() > 50);
  const Timeline timeline = record.take();
  CHECK(static_cast<std::int64_t>(timeline.spans.size()) == 100 - record.dropped());
}

}  // namespace moebius
