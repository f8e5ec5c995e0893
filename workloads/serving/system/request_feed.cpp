#include "workloads/serving/system/request_feed.h"

#include <cmath>
#include <utility>

namespace moebius {

OpenFeed::OpenFeed(std::unique_ptr<TrafficStream> traffic, double rate_scale)
    : traffic_(std::move(traffic)), rate_scale_(rate_scale) {
  advance();
}

void OpenFeed::advance() {
  more_ = traffic_->next(next_);
  if (rate_scale_ != 1) next_.arrival = {std::llround(static_cast<double>(next_.arrival.ns) / rate_scale_)};
}

std::optional<Time> OpenFeed::due() {
  return more_ ? std::optional(next_.arrival) : std::nullopt;
}

void OpenFeed::take(Arrival& arrival) {
  std::swap(arrival.request, next_);
  advance();
}

ClosedFeed::ClosedFeed(std::unique_ptr<TrafficStream> traffic, std::int64_t users)
    : traffic_(std::move(traffic)) {
  for (std::int64_t user = 0; user < users; ++user) free_.push({});
  advance();
}

void ClosedFeed::advance() {
  more_ = traffic_->next(next_);
}

std::optional<Time> ClosedFeed::due() {
  return more_ && !free_.empty() ? std::optional(free_.front()) : std::nullopt;
}

void ClosedFeed::take(Arrival& arrival) {
  std::swap(arrival.request, next_);
  arrival.request.arrival = free_.front();
  free_.pop();
  advance();
}

void ClosedFeed::answered(std::int64_t, Time now) {
  free_.push(now);
}

}  // namespace moebius
