// Receives what executors report, and keeps as much of it as the scenario asks for. Reports come from the streaming
// accumulators (metrics.h), never from the timeline, so that a run without a timeline reports the same.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "workloads/schedule/metrics.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

enum class Detail : std::uint8_t { kOps, kSteps, kNone };

struct RecorderOptions {
  Detail detail = Detail::kOps;
  Time window = kForever;                 // spans that start later are not kept
  Bytes max_bytes = {1073741824.0};       // of spans; what does not fit is counted in dropped_spans()
};

class Recorder {
 public:
  Recorder(const Layout& layout, RecorderOptions options);

  void submitted(const Submission& submission);  // before the executor sees it
  void span(const Span& span);                   // in the order of `end` within a class and lane
  void counter(std::int32_t rank_class, const char* name, Time time, double value);

  Metrics finish(Time end);                      // call once
  Timeline& timeline() { return timeline_; }
  std::uint64_t schedule_hash() const { return schedule_hash_; }  // of all submissions so far
  std::int64_t dropped_spans() const { return dropped_spans_; }

 private:
  std::int32_t fragment_row(const FragmentPtr& fragment);

  RecorderOptions options_;
  Timeline timeline_;
  MetricsAccumulator metrics_;
  std::vector<FragmentPtr> fragments_;           // distinct, by row
  std::unordered_map<const Fragment*, std::int32_t> fragment_rows_;
  std::vector<FragmentPtr> submissions_;         // fragment of each sequence
  std::uint64_t schedule_hash_ = 0;
  std::int64_t dropped_spans_ = 0;
};

}  // namespace moebius
