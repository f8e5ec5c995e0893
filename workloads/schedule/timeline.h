// What happened, and nothing derived from it: spans of ops on lanes, counters, the fragments they belong to, and the
// run's facts. Stored as one columnar file (.mtl), written to a temporary name and renamed, memory-mapped on load.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/units.h"
#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"

namespace moebius {

// Where the duration of a simulated op comes from; kExecuted for measured ones.
enum class Origin : std::uint8_t { kMeasured, kInterpolated, kExtrapolated, kAnalytic, kRoofline, kNetwork, kExecuted };
inline constexpr int kNumOrigins = static_cast<int>(Origin::kExecuted) + 1;
std::string_view to_string(Origin origin);

// One op on one lane of one class. Spans of one lane follow each other and do not overlap.
// - start: compute: when it holds its resources. Communication: when this member is ready for it.
// - work_start: communication: when the transfer itself could begin because all members were there; from start till then
//   the op waits for its peers. Zero or before start: at once. Compute does not use it.
// - A class of several members: start and end are those of its slowest member; first_end and mean_end are when the first
//   and the average member would have ended, had they started with it (zero: as end). Communication starts when the
//   average member is ready.
// - All times are at least zero and at most end.
struct Span {
  std::int32_t sequence = 0;   // submission
  std::int32_t op = 0;         // index in its fragment
  std::int32_t rank_class = 0;
  Lane lane = Lane::kCompute;
  Origin origin = Origin::kNetwork;
  std::int16_t slowest = 0;    // index of the slowest member in its expert group, 0 when all are equal
  float error = 0;             // expected relative error of the duration, 0.1 = 10%
  Time start = {}, end = {};
  Time first_end = {}, mean_end = {};
  Time work_start = {};

  Time transfer_start() const { return std::min(std::max(start, work_start), end); }
  Time average_end() const { return mean_end.ns == 0 ? end : mean_end; }
};

// The facts of an op that a timeline keeps, one row per op of each distinct fragment, in that order.
struct OpRow {
  OpKind kind = OpKind::kInput;
  DType dtype = DType::kBf16;
  Lane lane = Lane::kCompute;
  Phase phase = Phase::kForward;
  Role role = Role::kNone;
  GroupRole group = GroupRole::kNone;
  std::int16_t layer = -1;
  std::uint8_t second = 0;     // Op::second
  std::uint32_t match = 0;     // Op::match
  std::int32_t fragment = 0;   // which distinct fragment
  std::int32_t index = 0;      // in it
  std::int32_t first_dependency = 0, num_dependencies = 0;  // into Timeline::dependencies
  Shape shape = {};
  double flops = 0, bytes = 0; // op_flops, op_bytes (routed: of the busiest member)
  double payload = 0;          // Op::payload
};

// Of communication, for people: "59.4 MB"; of dispatch and combine, whose payload is one row, "7.42 kB a token".
std::string payload_text(const OpRow& op);

struct SubmissionRow {
  std::int32_t sequence = 0, fragment = 0, rank_class = 0, step = 0, microbatch = 0;
  std::int32_t second_microbatch = -1;         // Submission::second_microbatch
  std::int32_t first_after = 0, num_after = 0;  // into Timeline::afters
};

inline std::int32_t microbatch_of(const SubmissionRow& submission, const OpRow& op) {
  return op.second != 0 ? submission.second_microbatch : submission.microbatch;
}

// What a single op of a submission waits for besides: an op of an earlier one (Submission::follows).
struct FollowRow {
  std::int32_t sequence = 0, op = 0, before_sequence = 0, before_op = 0;
  bool operator==(const FollowRow&) const = default;
};

struct CounterSample {
  std::int32_t counter = 0, rank_class = 0;
  Time time = {};
  double value = 0;
};

// In memory while a run goes on, and the form in which it is saved. Empty columns are allowed ("detail": "none").
struct Timeline {
  std::vector<std::pair<std::string, std::string>> facts;    // "scenario", "executor", "seed", "schedule_hash", ...
  std::vector<std::string> fragments;                        // names of the distinct fragments
  std::vector<std::string> counters;                         // names
  std::vector<std::int32_t> class_ranks;                     // representative rank of each class
  std::vector<std::int32_t> class_sizes;
  std::vector<OpRow> ops;
  std::vector<SubmissionRow> submissions;                    // row i is that of sequence i
  std::vector<std::int32_t> dependencies;                    // indices of earlier ops of the same fragment
  std::vector<std::int32_t> afters;                          // sequences that had to complete before
  std::vector<FollowRow> follows;                            // by ascending sequence
  std::vector<Span> spans;                                   // by (sequence, op, rank_class) once saved
  std::vector<CounterSample> samples;
};

// Byte-identical for equal timelines. Errors (disk full, no such directory) are run_error; nothing half-written stays, and a
// file that stood there before stays as it was.
void save_timeline(const Timeline& timeline, const std::string& path);

// Read-only view of a file; the spans stay in the mapping, nothing of them is copied. Everything is checked when it is
// opened: whatever it gives out can be used as an index without a further look.
class MappedTimeline {
 public:
  explicit MappedTimeline(const std::string& path);  // truncated, foreign or inconsistent files are input_error
  MappedTimeline(std::span<const std::byte> file, const std::string& name);  // the bytes of one, copied; name: for errors
  ~MappedTimeline();
  MappedTimeline(MappedTimeline&&) noexcept;
  MappedTimeline& operator=(MappedTimeline&&) noexcept;

  std::size_t num_spans() const;
  Span span(std::size_t i) const;                    // in the order of (sequence, op, rank_class)
  const OpRow& op_of(const Span& span) const;
  const SubmissionRow& submission_of(const Span& span) const;
  std::string fact(std::string_view name) const;     // empty when the run has no such fact
  // The small tables, with `spans` left empty.
  const Timeline& tables() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace moebius
