// Slices and counters of somebody else's profile, and the timeline that they make: so that a run measured
// with other tools can be looked at, and compared with a prediction.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/schedule/timeline.h"

namespace moebius::viz {

// One slice: microseconds as the file has them, on a track.
struct ForeignSlice {
  double start = 0, duration = 0;
  double waiting = 0;                // at its begin, for others: only our own exports say so
  std::int32_t name = 0, track = 0;  // ids of names and tracks
};

struct ForeignSample {
  double time = 0, value = 0;
  std::int32_t counter = 0, process = 0;
};

struct ForeignTrack {
  std::int32_t process = 0;
  std::string thread;
};

struct ForeignTrace {
  std::vector<std::string> names, counters, processes;  // in words
  std::vector<bool> on_host;  // by name: calls and remarks of a host, whose kernels have slices of their own
  std::vector<ForeignTrack> tracks;
  std::vector<ForeignSlice> slices;
  std::vector<ForeignSample> samples;
  std::int64_t left_out = 0;  // events of kinds that have no place on a timeline
  std::string detail;         // what a timeline of ours kept, whose export this is; empty: of others
};

// What kind of op a name looks like: our own names ("gemm q_b L3") exactly, kernels of others by the words in
// them (gemm, flash, nccl, memcpy, ...). Nothing that is known is drawn as kAdd, which no one mistakes for a
// product, and counts as no kind of op.
struct GuessedOp {
  OpKind kind = OpKind::kAdd;
  bool known = false;
  Phase phase = Phase::kForward;
  std::int16_t layer = -1;
};
GuessedOp guess_op(std::string_view name);

// Seconds over all tracks by kind of op. A slice counts without the slices inside it.
struct ForeignTimes {
  struct OfKind {
    double busy = 0, waiting = 0;
  };
  std::map<OpKind, OfKind> kinds;
  double other = 0;  // of names that no kind is known of, and of calls of a host
};
ForeignTimes times_of(ForeignTrace& trace);  // sorts its slices

// Time starts with the first slice or sample; slices of a track that overlap (calls inside calls) stand on
// rows below each other. Every row is a class of its own, named by a fact "row N", and one below another by
// "below N" with the number of that; of an export of ours each process is one, with its lanes. Counters stand
// on the first row of their process. The trace is used up.
Timeline timeline_of(ForeignTrace&& trace, const std::string& source);

}  // namespace moebius::viz
