#include "sim/network/calendar.h"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

Calendar::Calendar(double width) : per_width_(1 / width), ring_(1), mask_(0) {}

void Calendar::reach(double furthest) {
  const auto needed = static_cast<std::uint64_t>(std::ceil(furthest * per_width_)) + 2;
  if (needed <= ring_.size()) return;
  std::vector<Bucket> larger(std::bit_ceil(needed));
  const auto mask = static_cast<std::int64_t>(larger.size()) - 1;
  for (std::int64_t bucket = bucket_; bucket <= bucket_ + mask_; ++bucket)
    larger[bucket & mask] = ring_[bucket & mask_];
  ring_ = std::move(larger);
  mask_ = mask;
}

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

void Calendar::skip(double time) {
  const auto bucket = static_cast<std::int64_t>(time * per_width_);
  if (size_ > 0 || bucket <= bucket_) return;
  Bucket& left = ring_[bucket_ & mask_];  // all its events are taken, its last block may not be back yet
  if (left.first >= 0) {
    blocks_[left.last].next = free_;
    free_ = left.first;
  }
  left = {};
  bucket_ = bucket;
  next_ = 0;
}

// Goes to the next event; false when there is none.
bool Calendar::find() {
  if (size_ == 0) return false;
  while (true) {
    Bucket& bucket = ring_[bucket_ & mask_];
    if (bucket.first < 0) {
      ++bucket_;
      continue;
    }
    Block& block = blocks_[bucket.first];
    if (next_ < block.size) return true;
    const std::int32_t empty = bucket.first;
    bucket.first = block.next;
    if (bucket.first < 0) bucket.last = -1;
    block.next = free_;
    free_ = empty;
    next_ = 0;
  }
}

double Calendar::next_time() {
  return find() ? static_cast<double>(bucket_) / per_width_ : std::numeric_limits<double>::infinity();
}

CalendarEvent Calendar::pop() {
  CHECK(find(), "an event to take");
  --size_;
  return blocks_[ring_[bucket_ & mask_].first].events[next_++];
}

}  // namespace moebius
