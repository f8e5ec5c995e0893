// One op with operands of its own on a device, to be executed again and again: the device's side of
// real/bench/host_case.h.
#pragma once

#include <memory>
#include <vector>

#include "real/bench/op_operands.h"
#include "real/cuda/device_op.h"

namespace moebius::cuda {

class CudaCase {
 public:
  // The operands are there when it returns. `library`: null: none.
  CudaCase(OpOperands operands, const CudaOptions& options, GemmLibrary* library);
  ~CudaCase();  // waits for what is under way
  CudaCase(const CudaCase&) = delete;

  // Gives the op to the device, after what was given before. The events of its start and end are in the
  // answer.
  IssuedOp issue();
  Stream stream() { return rank_.stream(Lane::kCompute); }
  EventRef mark() { return rank_.events.recorded(stream()); }
  std::vector<float> output(int i);  // of the last execution; for tests

 private:
  void make_fragment();
  void fill();
  TensorRef filled(const OperandSpec& spec);

  OpOperands operands_;
  std::vector<std::int32_t> inputs_, outputs_;  // ids in the fragment
  RoutePtr route_;
  RankClass place_;
  CudaOptions options_;
  DeviceRank rank_;
  Submission submission_;
};

}  // namespace moebius::cuda
