#include "sim/network/calendar.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

Calendar::Calendar(double width, double furthest)
    : per_width_(1 / width),
      ring_(std::bit_ceil(static_cast<std::uint64_t>(std::ceil(furthest / width)) + 2)),
      mask_(static_cast<std::int64_t>(ring_.size()) - 1) {}

void Calendar::too_far(std::int64_t bucket) const {
  CHECK(false, fmt::format("bucket {} from {} of {}", bucket, bucket_, ring_.size()));
}

void Calendar::extend(Bucket& bucket) {
  if (free_ < 0) {
    free_ = static_cast<std::int32_t>(blocks_.size());
    blocks_.emplace_back();
  }
  const std::int32_t block = free_;
  free_ = blocks_[block].next;
  blocks_[block].size = 0;
  blocks_[block].next = -1;
  (bucket.last < 0 ? bucket.first : blocks_[bucket.last].next) = block;
  bucket.last = block;
}

CalendarEvent Calendar::pop() {
  CHECK(size_ > 0, "an event to take");
  while (true) {
    Bucket& bucket = ring_[bucket_ & mask_];
    if (bucket.first < 0) {
      ++bucket_;
      continue;
    }
    Block& block = blocks_[bucket.first];
    if (next_ < block.size) {
      --size_;
      return block.events[next_++];
    }
    const std::int32_t empty = bucket.first;
    bucket.first = block.next;
    if (bucket.first < 0) bucket.last = -1;
    block.next = free_;
    free_ = empty;
    next_ = 0;
  }
}

}  // namespace moebius
