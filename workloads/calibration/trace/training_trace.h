// DeepSeek's published trace of a DeepSeek-V3 training chunk (deepseek-ai/profile-data, train.json), read as
// the ops of a schedule: which kernels, in the order in which the trace has them, do the work of which op.
// Four layers, 4096 tokens, kernels on 112 of 132 SMs beside communication.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/calibration/csv.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// Whose rows a kernel works on: the 4096 tokens of the microbatch, or the copies that this rank's experts
// got, which differ from layer to layer.
enum class TraceRows : std::uint8_t { kTokens, kCopies };

enum class TraceRole : std::uint8_t {
  kOp,          // the kernel begins an op
  kMore,        // it belongs to the last op of the same kind, type and columns in its layer
  kRecomputed,  // it begins an op and computes an activation again on the way: two ops of a schedule
  kSameBytes,   // it begins what no op of a schedule does; one that moves the same bytes stands in for it
  kNoOp         // neither
};

// A kernel, or `count` kernels in a row, of a layer's phase. An empty name stands for any kernel.
struct TraceStep {
  std::string_view kernel;
  TraceRole role = TraceRole::kOp;
  OpKind kind = OpKind::kAdd;
  DType dtype = DType::kBf16;
  std::int64_t n = 0, k = 0;  // of weight gradients: m and n; of a stand-in for a pass over weights: n and m
  TraceRows rows = TraceRows::kTokens;
  int count = 1;
  std::string_view what = {};  // of kNoOp
};

struct TracePhase {
  std::string_view name;  // "attn(F)"
  std::span<const TraceStep> steps;
};
std::span<const TracePhase> trace_phases();

struct TraceOp {
  int layer = 0;  // 1 to 4
  std::string_view phase;
  std::vector<CostQuery> queries;  // one; two of a kernel that does the work of two ops; none: see `what`
  std::string what;                // "norm 4096 x 7168"
  double microseconds = 0;         // of its kernels; kernels of two streams at once count once
  bool is_stand_in = false;        // TraceRole::kSameBytes: nothing can be learnt from it
};

// All kernels of the compute streams (7 and 23) of profile_data_train_kernels.csv. input_error for a kernel
// that does not come in the order of trace_phases().
std::vector<TraceOp> read_trace_ops(const Csv& kernels);

}  // namespace moebius
