#include "workloads/serving/system/request_feed.h"

#include <utility>

namespace moebius {

OpenFeed::OpenFeed(std::unique_ptr<TrafficStream> traffic, double rate_scale)
    : requests_(std::move(traffic), rate_scale) {}

std::optional<Time> OpenFeed::due() {
  return requests_.due(Time{});
}

void OpenFeed::take(Arrival& arrival) {
  arrival.tag = requests_.take(Time{}, arrival.request);
}

void OpenFeed::answered(std::int64_t tag, Time now) {
  requests_.answered(tag, now);
}

ClosedFeed::ClosedFeed(std::unique_ptr<TrafficStream> traffic, std::int64_t users)
    : requests_(std::move(traffic), 0) {
  for (std::int64_t user = 0; user < users; ++user) free_.push({});
}

std::optional<Time> ClosedFeed::due() {
  return free_.empty() ? std::nullopt : requests_.due(free_.top());
}

void ClosedFeed::take(Arrival& arrival) {
  arrival.tag = requests_.take(free_.top(), arrival.request);
  free_.pop();
}

void ClosedFeed::answered(std::int64_t tag, Time now) {
  requests_.answered(tag, now);
  free_.push(now);
}

}  // namespace moebius
