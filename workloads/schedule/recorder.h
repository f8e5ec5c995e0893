// Receives what executors report, and keeps as much of it as the scenario asks for. Reports come from the
// streaming accumulators (metrics.h), never from the timeline, so that a run without a timeline reports the
// same.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/schedule/hash.h"
#include "workloads/schedule/metrics.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

// What a timeline keeps of the spans.
// - kOps: each of them.
// - kSteps: one for each submission, on the compute lane under its op 0, from the moment when its first op
// works (waiting
//   for peers left out) to the end of its last.
// - kNone: no span, and no table of ops or submissions either.
enum class Detail : std::uint8_t { kOps, kSteps, kNone };
std::string_view to_string(Detail detail);

struct RecorderOptions {
  Detail detail = Detail::kOps;
  Time window = kForever;  // spans that start later are not kept, but counted as dropped
  Bytes max_bytes = {
      1073741824.0};   // of spans and samples in memory; what does not fit is counted as dropped
  Time counters = {};  // how often the simulated network, or a service's pools, are sampled; zero: the
                       // network never, pools on a grid of at most ServiceRecord::kMostSteps
  bool stores = true;  // false: spans are counted as they would be kept, but no one will look at them
};

class Recorder {
 public:
  // `layout` must outlive the recorder.
  Recorder(const Layout& layout, RecorderOptions options);
  Recorder(const Layout&& layout, RecorderOptions options) = delete;

  // Before the executor sees it; sequences come in order, from 0.
  void submitted(const Submission& submission);
  // One for each op of each submission, in the order of `end` within a class and lane.
  void span(const Span& span);
  // Joule that the work of one rank of a class drew; see BusySources.
  void drew(std::int32_t rank_class, double joules) { metrics_.drew(rank_class, joules); }
  // A value that changes over time, such as bytes in use.
  void counter(std::int32_t rank_class, std::string_view name, Time time, double value);
  // The same by the number that counter_named() gives a name: for who has many counters.
  std::int32_t counter_named(std::string_view name);
  void counter(std::int32_t rank_class, std::int32_t counter, Time time, double value);

  // Call once, when the run has ended; from here the timeline is complete, with the facts schedule_hash,
  // timeline_detail and, where something was left out, timeline_window_s, dropped_spans and dropped_samples.
  Metrics finish(Time end);

  BusySources busy_so_far() const { return metrics_.busy_so_far(); }  // over all spans until now
  Timeline& timeline() { return timeline_; }
  const RecorderOptions& options() const { return options_; }
  std::uint64_t schedule_hash() const { return schedule_hash_.value(); }  // of all submissions so far
  std::int64_t dropped_spans() const { return dropped_spans_; }

 private:
  using CountedOps = std::vector<CountedOp>;  // by op of a fragment, for one class

  // A submission of which not all ops have ended.
  struct Open {
    FragmentPtr fragment = {};
    std::shared_ptr<const CountedOps> ops =
        {};  // of classes with several ranks; null: small enough to count anew
    std::int32_t rank_class = 0;
    std::int32_t remaining = 0;
    Time start = kForever, end = {};  // so far
    PassTimes::Pass pass;             // the same of its compute ops
  };

  std::int64_t first_open() const { return first_kept_ + static_cast<std::int64_t>(num_closed_); }
  std::int32_t fragment_row(const Fragment& fragment);
  std::shared_ptr<const CountedOps> counted_ops(const FragmentPtr& fragment, std::int32_t rank_class);
  void forget_unused();
  CountedOp count_anew(const Open& open, std::int32_t op) const;
  void keep(const Span& span);
  void make_room();
  void keep_submission(std::int32_t sequence, const Open& open);
  void close_finished();
  bool fits(std::size_t bytes);
  void add_facts();

  const Layout& layout_;
  RecorderOptions options_;
  Timeline timeline_;
  MetricsAccumulator metrics_;
  PassTimes pass_times_;
  std::unordered_map<std::uint64_t, std::int32_t> fragment_rows_;  // by hash
  std::map<std::pair<std::uint64_t, std::int32_t>, std::shared_ptr<const CountedOps>>
      counted_ops_;  // by hash and class
  std::size_t most_counted_ops_ = 256;
  std::unordered_map<std::string, std::int32_t> counter_ids_;
  std::vector<Open> open_;       // and before them some that have closed
  std::int32_t first_kept_ = 0;  // sequence of open_.front()
  std::size_t num_closed_ = 0;   // at the front
  Hash schedule_hash_;
  double kept_bytes_ = 0;
  std::int64_t dropped_spans_ = 0, dropped_samples_ = 0;
};

}  // namespace moebius
