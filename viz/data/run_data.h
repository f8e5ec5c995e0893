// A run opened for looking at: its timeline laid out for drawing, its counters and its report.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hw/document.h"
#include "viz/data/counter_track.h"
#include "viz/data/lane_spans.h"
#include "viz/data/level_of_detail.h"
#include "viz/data/op_names.h"
#include "viz/data/transfers.h"
#include "workloads/schedule/span_columns.h"

namespace moebius::viz {

struct RunData {
  // A run's directory or its timeline. The timeline must be there (input_error); a report that is missing or
  // damaged leaves `report` null and says why in `report_trouble`.
  explicit RunData(const std::string& given_path);
  RunData(const RunData&) = delete;
  RunData& operator=(const RunData&) = delete;

  const Timeline& tables() const { return columns.tables(); }
  bool of_submissions() const { return viz::of_submissions(tables()); }  // its spans are
  double length() const;  // ns: the end of the last span or sample
  const Value* figure(
      const std::string& dotted_path) const;  // "memory.peak_bytes" of the report; null when absent
  double number(const std::string& dotted_path, double otherwise = 0) const;
  std::string text(const std::string& dotted_path) const;  // empty when absent
  const std::string& name_of_op(std::uint32_t op_row) const;
  // When the work of a slot began: of communication, when all members were there.
  std::int64_t work_start(std::size_t slot) const;
  const std::vector<Transfer>& transfers() const;  // found when first asked for
  // Whether the timeline says what its ops depend on; services and imports do not.
  bool has_dependencies() const { return !tables().dependencies.empty() || !tables().afters.empty(); }
  // The submissions that could begin when that of `sequence` had completed; sorted when first asked for.
  std::span<const std::int32_t> submissions_after(std::int32_t sequence) const;

  std::string path, title;
  SpanColumns columns;
  LaneSpans lanes;
  LevelOfDetail detail;
  std::vector<CounterTrack> counters;
  Value report;
  std::string report_trouble;

 private:
  mutable std::vector<std::string> op_names_;
  mutable std::unique_ptr<std::vector<Transfer>> transfers_;
  mutable std::vector<std::int32_t> first_next_, next_;  // of each sequence and one more; into next_
};

}  // namespace moebius::viz
