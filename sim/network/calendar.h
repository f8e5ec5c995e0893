// Events in the order of time, to the width of a bucket: a ring of buckets, so that adding and taking cost
// the same however many wait. Events of one bucket come in the order in which they were added. Buckets are
// chains of blocks that are used again as soon as they are empty: what waits stays in the cache.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace moebius {

struct CalendarEvent {
  double time = 0;  // s
  std::int32_t what = 0;
  std::int32_t kind = 0;
};

class Calendar {
 public:
  explicit Calendar(double width);

  // From now on no event is further ahead of the one taken last than this (CHECK).
  void reach(double furthest);

  // An event of the past is one of now.
  void push(const CalendarEvent& event) {
    std::int64_t bucket = static_cast<std::int64_t>(event.time * per_width_);
    if (bucket < bucket_) bucket = bucket_;
    if (bucket - bucket_ > mask_) too_far(bucket);
    Bucket& into = ring_[bucket & mask_];
    if (into.last < 0 || blocks_[into.last].size == kBlock) extend(into);
    Block& block = blocks_[into.last];
    block.events[block.size++] = event;
    ++size_;
  }
  bool empty() const { return size_ == 0; }
  // Goes on to `time` where nothing waits until then.
  void skip(double time);
  double width() const { return 1 / per_width_; }
  CalendarEvent pop();  // there must be one (CHECK)
  // One that comes `events` after the one that pop() gave last, if it stands near; none that matters else.
  const CalendarEvent* ahead(int events) const {
    const Block& block = blocks_[ring_[bucket_ & mask_].first];
    return next_ - 1 + events < block.size ? &block.events[next_ - 1 + events] : nullptr;
  }
  // Of the bucket that pop() takes from next: at most the time of its events; infinity when there is none.
  double next_time();

 private:
  static constexpr int kBlock = 31;
  struct Block {
    std::array<CalendarEvent, kBlock> events;
    std::int32_t size = 0, next = -1;
  };
  struct Bucket {
    std::int32_t first = -1, last = -1;  // blocks
  };

  bool find();
  void extend(Bucket& bucket);
  void too_far(std::int64_t bucket) const;

  double per_width_;
  std::vector<Bucket> ring_;  // as many as a power of two
  std::int64_t mask_;
  std::vector<Block> blocks_;
  std::int32_t free_ = -1;   // blocks, chained
  std::int64_t bucket_ = 0;  // at hand, since time 0
  std::int32_t next_ = 0;    // in the first block of the bucket at hand
  std::int64_t size_ = 0;
};

}  // namespace moebius
