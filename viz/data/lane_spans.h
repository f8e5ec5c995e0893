// The spans of a run sorted for drawing: row by row, in each by time, in arrays of what drawing reads. 20
// bytes a span (10^7 spans: 200 MB); everything else about a span is read from the file when someone asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/schedule/span_columns.h"

namespace moebius::viz {

// One lane of one class. Spans that overlap, as iterations of several instances may, stand in further rows of
// the lane.
struct LaneRow {
  std::int32_t rank_class = 0;
  Lane lane = Lane::kCompute;
  std::int32_t part = 0;             // 0 unless spans of the lane overlap
  std::size_t first = 0, count = 0;  // slots

  std::size_t last() const { return first + count; }
};

class LaneSpans {
 public:
  LaneSpans() = default;
  explicit LaneSpans(const SpanColumns& spans);  // input_error where they are inconsistent

  const std::vector<LaneRow>& rows() const { return rows_; }
  std::size_t size() const { return start_.size(); }
  std::int64_t end_of_run() const { return end_of_run_; }

  // By slot; slots of a row ascend by time and do not overlap.
  std::int64_t start(std::size_t slot) const { return start_[slot]; }
  std::int64_t end(std::size_t slot) const { return start_[slot] + length(slot); }
  std::int64_t length(std::size_t slot) const {
    return length_[slot] < kLong ? static_cast<std::int64_t>(length_[slot]) : long_length(slot);
  }
  std::uint32_t op_row(std::size_t slot) const { return op_row_[slot]; }
  std::uint32_t span(std::size_t slot) const { return span_[slot]; }

  // The first slot of the row that ends after `time`; row.last() when there is none.
  std::size_t first_ending_after(const LaneRow& row, std::int64_t time) const;
  // The row and slot of a span; false when it is not among them.
  bool find(const SpanColumns& spans, std::size_t span, std::size_t& row, std::size_t& slot) const;

 private:
  static constexpr std::uint32_t kLong = 0xffffffff;  // 4.3 s or more: stands in long_
  static constexpr std::size_t kIndexStep = 64;       // every so many starts stand together for searching

  struct LongSpan {
    std::uint32_t slot = 0;
    std::int64_t length = 0;
  };

  void count_rows(const SpanColumns& spans);
  void scatter(const SpanColumns& spans);
  void unfold_overlaps();
  void set_length(std::size_t slot, std::int64_t length);
  std::int64_t long_length(std::size_t slot) const;

  std::vector<LaneRow> rows_;
  std::vector<std::int64_t> start_, every_start_;
  std::vector<std::uint32_t> length_, op_row_, span_;
  std::vector<LongSpan> long_;  // by slot
  std::int64_t end_of_run_ = 0;
};

}  // namespace moebius::viz
