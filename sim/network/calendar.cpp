#include "sim/network/calendar.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

Calendar::Calendar(double width, double furthest)
    : width_(width), ring_(static_cast<std::size_t>(std::ceil(furthest / width)) + 2) {}

void Calendar::push(const CalendarEvent& event) {
  const std::int64_t bucket = std::max(bucket_, static_cast<std::int64_t>(event.time / width_));
  const auto ring_size = static_cast<std::int64_t>(ring_.size());
  CHECK(bucket - bucket_ < ring_size, fmt::format("bucket {} from {}", bucket, bucket_));
  ring_[bucket % ring_size].push_back(event);
  ++size_;
}

CalendarEvent Calendar::pop() {
  CHECK(size_ > 0, "an event to take");
  const auto ring_size = static_cast<std::int64_t>(ring_.size());
  while (next_ == ring_[bucket_ % ring_size].size()) {
    ring_[bucket_ % ring_size].clear();
    ++bucket_;
    next_ = 0;
  }
  --size_;
  return ring_[bucket_ % ring_size][next_++];
}

}  // namespace moebius
