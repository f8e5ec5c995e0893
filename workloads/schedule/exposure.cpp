#include "workloads/schedule/exposure.h"

#include <algorithm>
#include <tuple>

namespace moebius {

namespace {

constexpr std::int16_t kNobody = -1;  // a gap in which nothing waits
constexpr std::int16_t kTaken = -2;   // not a gap any more
constexpr std::size_t kMaxGaps =
    1 << 16;  // older ones stay as they are: a span that is reported so late is rare

bool is_pipeline(OpKind kind) {
  return kind == OpKind::kSend || kind == OpKind::kRecv;
}

}  // namespace

// Takes what `interval` finds in the gaps: for a waiter, where nobody waits yet; with kTaken, all of it.
std::int64_t Exposure::take(Interval interval, std::int16_t new_waiter) {
  if (interval.start >= interval.end) return 0;
  std::int64_t got = 0;
  auto gap = std::partition_point(gaps_.begin(), gaps_.end(),
                                  [&](const Gap& g) { return g.interval.end <= interval.start; });
  while (gap != gaps_.end() && gap->interval.start < interval.end) {
    if (new_waiter != kTaken && gap->waiter != kNobody) {
      ++gap;
      continue;
    }
    const Gap old = *gap;
    const Interval part{std::max(old.interval.start, interval.start),
                        std::min(old.interval.end, interval.end)};
    got += part.end - part.start;
    if (old.waiter != kNobody) waiting_[old.waiter] -= part.end - part.start;
    std::array<Gap, 3> left;
    std::size_t count = 0;
    if (old.interval.start < part.start) left[count++] = {{old.interval.start, part.start}, old.waiter};
    if (new_waiter != kTaken) left[count++] = {part, new_waiter};
    if (part.end < old.interval.end) left[count++] = {{part.end, old.interval.end}, old.waiter};
    if (count == 0) {
      gap = gaps_.erase(gap);
      continue;
    }
    *gap = left[0];
    for (std::size_t i = 1; i < count; ++i) gap = gaps_.insert(gap + 1, left[i]);
    ++gap;
  }
  return got;
}

// From here on no compute op can come that runs before `known_until`: what ended by then is settled.
void Exposure::settle(std::int64_t known_until) {
  const auto open = std::partition(pending_.begin(), pending_.end(), [&](const ExposedCommunication& c) {
    return c.transfer.end <= known_until;
  });
  std::sort(pending_.begin(), open, [](const ExposedCommunication& a, const ExposedCommunication& b) {
    return std::tie(a.transfer.start, a.kind) < std::tie(b.transfer.start, b.kind);
  });
  for (auto c = pending_.begin(); c != open; ++c) {
    const std::int64_t got = take(c->transfer, kTaken);
    transfer_[static_cast<int>(c->kind)] += got;
    transfer_by_phase_[static_cast<int>(c->phase)] += got;
    transfer_by_group_[static_cast<int>(c->group)] += got;
  }
  std::sort(pending_.begin(), open, [](const ExposedCommunication& a, const ExposedCommunication& b) {
    return std::tuple(is_pipeline(a.kind), a.waiting.start, a.kind) <
           std::tuple(is_pipeline(b.kind), b.waiting.start, b.kind);
  });
  for (auto c = pending_.begin(); c != open; ++c) {
    const auto kind = static_cast<std::int16_t>(c->kind);
    waiting_[kind] += take(c->waiting, kind);
  }
  pending_.erase(pending_.begin(), open);
}

void Exposure::compute(Interval interval) {
  // Part of it may lie before what is known, when compute lanes overlap.
  if (interval.start < known_until_) {
    computed_ += take({interval.start, std::min(interval.end, known_until_)}, kTaken);
    interval.start = known_until_;
  }
  if (interval.end <= interval.start) return;
  if (interval.start > known_until_) gaps_.push_back({{known_until_, interval.start}, kNobody});
  if (gaps_.size() > kMaxGaps) gaps_.pop_front();
  computed_ += interval.end - interval.start;
  known_until_ = interval.end;
  if (!pending_.empty()) settle(known_until_);
}

void Exposure::communicate(const ExposedCommunication& communication) {
  pending_.push_back(communication);
}

void Exposure::finish(std::int64_t end) {
  if (end > known_until_) gaps_.push_back({{known_until_, end}, kNobody});
  known_until_ = std::max(known_until_, end);
  settle(known_until_);
  gaps_.clear();
}

}  // namespace moebius
