// Slices and counters of somebody else's profile, and the timeline that they make: so that a run measured
// with other tools can be looked at, and compared with a prediction.
#pragma once

#include <cstdint>
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
  std::int32_t name = 0, track = 0;  // ids of names and tracks
};

struct ForeignSample {
  double time = 0, value = 0;
  std::int32_t counter = 0, process = 0;
};

struct ForeignTrace {
  std::vector<std::string> names, counters;
  std::vector<std::pair<std::string, std::string>> tracks;  // process and thread, in words
  std::vector<ForeignSlice> slices;
  std::vector<ForeignSample> samples;
  std::int64_t left_out = 0;  // events of kinds that have no place on a timeline
};

// What kind of op a name looks like: our own names ("gemm q_b L3") exactly, kernels of others by the words in
// them (gemm, flash, nccl, memcpy, ...). Nothing that is known: kAdd for compute, which no one mistakes for a
// product.
struct GuessedOp {
  OpKind kind = OpKind::kAdd;
  Phase phase = Phase::kForward;
  std::int16_t layer = -1;
};
GuessedOp guess_op(std::string_view name);

// Time starts with the first slice; slices of a track that overlap (calls inside calls) stand on rows below
// each other. Every row is a class of its own, named by a fact "row N". The trace is used up.
Timeline timeline_of(ForeignTrace&& trace, const std::string& source);

}  // namespace moebius::viz
