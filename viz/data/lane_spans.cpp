#include "viz/data/lane_spans.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

#include "hw/error.h"

namespace moebius::viz {
namespace {

constexpr std::size_t kForgetEvery = 1 << 18;  // spans: what has been read leaves memory

std::size_t lane_of(const SpanColumns& spans, std::size_t i) {
  return static_cast<std::size_t>(spans.rank_class(i)) * kNumLanes + static_cast<std::size_t>(spans.lane(i));
}

template <class T>
void reorder(std::vector<T>& values, std::size_t first, const std::vector<std::uint32_t>& order) {
  std::vector<T> sorted(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = values[first + order[i]];
  std::copy(sorted.begin(), sorted.end(), values.begin() + static_cast<std::ptrdiff_t>(first));
}

}  // namespace

LaneSpans::LaneSpans(const SpanColumns& spans) {
  if (spans.size() >= std::numeric_limits<std::uint32_t>::max())
    throw run_error(spans.name() + ": more spans than the viewer can show (4.3e9)");
  start_.resize(spans.size());
  length_.resize(spans.size());
  op_row_.resize(spans.size());
  span_.resize(spans.size());
  count_rows(spans);
  scatter(spans);
  unfold_overlaps();
  every_start_.resize(start_.size() / kIndexStep + 1);
  for (std::size_t slot = 0; slot < start_.size(); slot += kIndexStep)
    every_start_[slot / kIndexStep] = start_[slot];
}

void LaneSpans::count_rows(const SpanColumns& spans) {
  const std::size_t classes = spans.tables().class_ranks.size();
  std::vector<std::size_t> counts(classes * kNumLanes);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const std::int32_t rank_class = spans.rank_class(i);
    const bool known = rank_class >= 0 && static_cast<std::size_t>(rank_class) < classes &&
                       static_cast<int>(spans.lane(i)) < kNumLanes;
    if (!known) static_cast<void>(spans.checked_row(i));  // says what is wrong
    ++counts[lane_of(spans, i)];
  }
  std::size_t first = 0;
  for (std::size_t lane = 0; lane < counts.size(); ++lane) {
    if (counts[lane] == 0) continue;
    rows_.push_back({static_cast<std::int32_t>(lane / kNumLanes), static_cast<Lane>(lane % kNumLanes), 0,
                     first, counts[lane]});
    first += counts[lane];
  }
}

// In the order of the file, which is that of time in each lane of a training run.
void LaneSpans::scatter(const SpanColumns& spans) {
  std::vector<std::size_t> next(spans.tables().class_ranks.size() * kNumLanes);
  for (const LaneRow& row : rows_)
    next[static_cast<std::size_t>(row.rank_class) * kNumLanes + static_cast<std::size_t>(row.lane)] =
        row.first;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const std::uint32_t op_row = spans.checked_row(i);
    const std::size_t slot = next[lane_of(spans, i)]++;
    const std::int64_t start = spans.start(i), end = spans.end(i);
    start_[slot] = start;
    op_row_[slot] = op_row;
    span_[slot] = static_cast<std::uint32_t>(i);
    set_length(slot, end - start);
    end_of_run_ = std::max(end_of_run_, end);
    if (i % kForgetEvery == kForgetEvery - 1) spans.forget(i + 1 - kForgetEvery, kForgetEvery);
  }
  std::sort(long_.begin(), long_.end(), [](const LongSpan& a, const LongSpan& b) { return a.slot < b.slot; });
}

void LaneSpans::set_length(std::size_t slot, std::int64_t length) {
  const bool is_long = length >= std::int64_t{kLong};
  length_[slot] = is_long ? kLong : static_cast<std::uint32_t>(length);
  if (is_long) long_.push_back({static_cast<std::uint32_t>(slot), length});
}

std::int64_t LaneSpans::long_length(std::size_t slot) const {
  const auto at = std::lower_bound(long_.begin(), long_.end(), slot,
                                   [](const LongSpan& a, std::size_t s) { return a.slot < s; });
  return at->length;
}

// Where spans of a lane are out of order or overlap: sorted, and dealt out to as few rows as hold them apart.
void LaneSpans::unfold_overlaps() {
  std::vector<LaneRow> unfolded;
  for (const LaneRow& row : rows_) {
    bool apart = true;
    for (std::size_t slot = row.first + 1; apart && slot < row.last(); ++slot)
      apart = end(slot - 1) <= start_[slot];
    if (apart) {
      unfolded.push_back(row);
      continue;
    }
    std::vector<std::uint32_t> order(row.count), part(row.count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return start_[row.first + a] < start_[row.first + b];
    });
    // The parts that are free, lowest first, and when the others become so.
    using Busy = std::pair<std::int64_t, std::uint32_t>;
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free;
    std::uint32_t parts = 0;
    for (const std::uint32_t i : order) {
      const std::size_t slot = row.first + i;
      for (; !busy.empty() && busy.top().first <= start_[slot]; busy.pop()) free.push(busy.top().second);
      if (free.empty()) free.push(parts++);
      part[i] = free.top();
      free.pop();
      busy.push({end(slot), part[i]});
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return part[a] < part[b]; });
    std::vector<std::int64_t> lengths(row.count);
    for (std::size_t i = 0; i < row.count; ++i) lengths[i] = length(row.first + order[i]);
    reorder(start_, row.first, order);
    reorder(op_row_, row.first, order);
    reorder(span_, row.first, order);
    std::erase_if(long_, [&](const LongSpan& s) { return s.slot >= row.first && s.slot < row.last(); });
    std::vector<LongSpan> before;
    before.swap(long_);
    for (std::size_t i = 0; i < row.count; ++i) set_length(row.first + i, lengths[i]);
    long_.insert(long_.end(), before.begin(), before.end());
    std::sort(long_.begin(), long_.end(),
              [](const LongSpan& a, const LongSpan& b) { return a.slot < b.slot; });
    for (std::size_t i = 0; i < row.count; ++i) {
      const auto of_row = static_cast<std::int32_t>(part[order[i]]);
      if (i == 0 || of_row != unfolded.back().part)
        unfolded.push_back({row.rank_class, row.lane, of_row, row.first + i, 0});
      ++unfolded.back().count;
    }
  }
  rows_.swap(unfolded);
}

std::size_t LaneSpans::first_ending_after(const LaneRow& row, std::int64_t time) const {
  // The last span that starts at or before `time`, by the few starts that stand together, then among its
  // neighbours.
  const std::size_t low_block = (row.first + kIndexStep - 1) / kIndexStep,
                    high_block = (row.last() - 1) / kIndexStep + 1;
  std::size_t low = row.first, high = row.last();
  if (low_block < high_block) {
    const auto begin = every_start_.begin() + static_cast<std::ptrdiff_t>(low_block);
    const auto end = every_start_.begin() + static_cast<std::ptrdiff_t>(high_block);
    const auto above = static_cast<std::size_t>(std::upper_bound(begin, end, time) - every_start_.begin());
    if (above > low_block) low = (above - 1) * kIndexStep;
    high = std::min(high, above * kIndexStep);
  }
  const auto after =
      std::upper_bound(start_.begin() + static_cast<std::ptrdiff_t>(low),
                       start_.begin() + static_cast<std::ptrdiff_t>(std::max(low, high)), time);
  const auto slot = static_cast<std::size_t>(after - start_.begin());
  return slot > row.first && end(slot - 1) > time ? slot - 1 : slot;
}

bool LaneSpans::find(const SpanColumns& spans, std::size_t span, std::size_t& row, std::size_t& slot) const {
  for (row = 0; row < rows_.size(); ++row) {
    const LaneRow& r = rows_[row];
    if (r.rank_class != spans.rank_class(span) || r.lane != spans.lane(span)) continue;
    const auto first = start_.begin() + static_cast<std::ptrdiff_t>(r.first);
    const auto last = start_.begin() + static_cast<std::ptrdiff_t>(r.last());
    const auto range = std::equal_range(first, last, spans.start(span));
    for (slot = static_cast<std::size_t>(range.first - start_.begin());
         slot < static_cast<std::size_t>(range.second - start_.begin()); ++slot)
      if (span_[slot] == span) return true;
  }
  return false;
}

}  // namespace moebius::viz
