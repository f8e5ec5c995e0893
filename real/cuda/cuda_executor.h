// Executes frozen schedules on the GPUs of this machine with real numbers: every rank is a thread of the host
// that gives work to streams of its own, one for each lane, and never waits for the device. Ranks stand in
// contiguous blocks on all devices that are visible. It is HostExecutor's
// (real/host/host_executor.h) peer: the same seed gives the same parameters, data and routes, and what ops
// store agrees within real/cuda/tolerances.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "real/cuda/device_op.h"
#include "real/cuda/op_trace.h"
#include "real/host/host_executor.h"
#include "workloads/schedule/executor.h"
#include "workloads/schedule/recorder.h"

namespace moebius {

class CudaExecutor : public Executor {
 public:
  // The recorder outlives the executor. run_error: no device, a folded layout.
  CudaExecutor(const Layout& layout, Recorder& recorder, const cuda::CudaOptions& options);
  ~CudaExecutor() override;

  Time now() const override;  // since construction
  void submit(const Submission& submission) override;
  // Executor's contract. Spans are the device's own times. A rank that fails stops all others and its error
  // is thrown here, as is that of a loss that is not finite. A deadlock is recognised when `until` is
  // kForever.
  std::vector<Completion> wait(Time until) override;
  Time finish() override;

  // Between finish() and the next submit(), as HostExecutor's.
  double loss(int step) const;
  int num_steps() const;
  std::vector<Transfer> transfers() const;
  std::vector<float> tensor(int rank, std::uint32_t key) const;
  std::vector<float> parameter(int rank, Role role, int layer) const;
  std::vector<float> gradient(int rank, Role role, int layer) const;
  // The weights, or optimizer states, that a rank has touched: copies, row-major.
  std::vector<HeldValues> held(int rank, MemoryKind memory) const;
  void set_parameter(int rank, std::uint32_t key, std::vector<float> values);
  std::size_t num_microbatch_tensors(int rank) const;

  // Before the first submission: from there on it is recorded which kernels run for which op, which costs a
  // few microseconds each. run_error: see open_kernel_trace.
  void trace_kernels();
  std::vector<cuda::OpActivity> take_trace();  // after finish()

  // What it runs on, for reports: the device, the versions, who multiplies matrices.
  std::vector<std::pair<std::string, std::string>> description() const;
  std::int64_t nccl_exchanges() const;  // meetings of a group whose work NCCL has got
  std::size_t reserved_bytes() const;   // of the device's memory, by all ranks
  // How far the device's clock has run from the host's since the start; between finish() and the next
  // submit().
  Time clock_drift() const;

 private:
  std::vector<float> by_role(int rank, MemoryKind memory, Role role, int layer) const;

  struct State;
  std::unique_ptr<State> state_;
};

// On the device that is linked in (real/cuda/device.h).
std::unique_ptr<CudaExecutor> make_cuda_executor(const Layout& layout, Recorder& recorder,
                                                 const cuda::CudaOptions& options);
// The first device's memory, in bytes; the same errors.
double cuda_memory_bytes();
// That of each device.
std::vector<double> cuda_memories();

}  // namespace moebius
