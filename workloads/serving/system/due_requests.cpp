#include "workloads/serving/system/due_requests.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "hw/clock_end.h"
#include "hw/error.h"

namespace moebius {
namespace {

Time scaled(Time time, double rate_scale) {
  if (rate_scale == 1) return time;
  if (rate_scale == 0) return {};
  const double ns = static_cast<double>(time.ns) / rate_scale;
  if (ns >= 0x1p63) clocks_end({}, ns * 1e-9);
  return {std::llround(ns)};
}

}  // namespace

DueRequests::DueRequests(std::unique_ptr<TrafficStream> traffic, double rate_scale)
    : traffic_(std::move(traffic)), rate_scale_(rate_scale) {
  advance();
}

bool DueRequests::read() {
  if (!traffic_->next(next_)) return false;
  ++number_;
  next_.arrival = scaled(next_.arrival, rate_scale_);
  next_.pause = scaled(next_.pause, rate_scale_);
  if (next_.awaited) answers_.try_emplace(number_);
  return true;
}

void DueRequests::advance() {
  do {
    more_ = read();
  } while (more_ && holds_next());
}

// The next one waits for an answer, or for what comes between that and its turn.
bool DueRequests::holds_next() {
  if (next_.follows < 0) return false;
  const auto before = answers_.find(next_.follows);
  CHECK(before != answers_.end(), "a request follows one that nobody was to follow");
  Waiting waiting{std::move(next_), number_};
  if (before->second.end == kForever) {
    before->second.next = std::make_unique<Waiting>(std::move(waiting));
    return true;
  }
  waiting.request.arrival =
      std::max(waiting.request.arrival, later(before->second.end, waiting.request.pause));
  answers_.erase(before);
  release(std::move(waiting));
  return true;
}

void DueRequests::release(Waiting waiting) {
  released_.push_back(std::move(waiting));
  std::push_heap(released_.begin(), released_.end(), std::greater<>());
}

// They stand before the next one of the stream.
bool DueRequests::first_is_released(Time from) const {
  if (released_.empty()) return false;
  return !more_ || released_.front().request.arrival <= std::max(from, next_.arrival);
}

std::optional<Time> DueRequests::due(Time from) const {
  if (first_is_released(from)) return std::max(from, released_.front().request.arrival);
  if (!more_) return std::nullopt;
  return std::max(from, next_.arrival);
}

std::int64_t DueRequests::take(Time from, TrafficRequest& request) {
  const Time at = *due(from);
  std::int64_t number = number_;
  if (first_is_released(from)) {
    std::pop_heap(released_.begin(), released_.end(), std::greater<>());
    number = released_.back().number;
    request = std::move(released_.back().request);
    released_.pop_back();
  } else {
    std::swap(request, next_);
    advance();
  }
  request.arrival = at;
  return number;
}

void DueRequests::answered(std::int64_t number, Time now) {
  const auto answer = answers_.find(number);
  if (answer == answers_.end()) return;
  answer->second.end = now;
  if (!answer->second.next) return;
  Waiting waiting = std::move(*answer->second.next);
  answers_.erase(answer);
  waiting.request.arrival = std::max(waiting.request.arrival, later(now, waiting.request.pause));
  release(std::move(waiting));
}

}  // namespace moebius
