// Which kernels ran for which op of a run, as a table that joins with its timeline.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "models/op_kind.h"
#include "real/cuda/kernel_trace.h"

namespace moebius::cuda {

struct TracedOp {
  std::int32_t sequence = 0, op = 0, rank = 0;
  OpKind kind = {};
};

struct OpActivity {
  TracedOp op;
  DeviceActivity activity;  // owner: of no meaning
};

class OpTrace {
 public:
  explicit OpTrace(std::unique_ptr<KernelTrace> trace) : trace_(std::move(trace)) {}

  void begin(const TracedOp& op);  // in the thread that gives the op to the device
  void end() { trace_->leave(); }
  // Of all ops that have been given and have ended: by sequence, rank, op, start. What ran for no op is left
  // out.
  std::vector<OpActivity> take();

 private:
  std::unique_ptr<KernelTrace> trace_;
  std::mutex mutex_;
  std::vector<TracedOp> ops_;  // by owner
};

// Tab-separated: sequence, rank, op (the timeline's key), kind, start_ns, end_ns, stream, name. run_error
// when it cannot be written.
void write_activities(const std::string& path, const std::vector<OpActivity>& activities);

}  // namespace moebius::cuda
