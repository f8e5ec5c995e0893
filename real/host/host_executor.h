// Executes frozen schedules on the CPU with real numbers: every rank is a thread with a memory of its own. It
// is slow and right: the oracle for other executors. Several processes may share a run: each has the ranks of
// its block, and all of them see the same completions, spans, losses and transfers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "real/host/op_context.h"
#include "real/processes/finished_submission.h"
#include "real/processes/rank_block.h"
#include "workloads/schedule/executor.h"
#include "workloads/schedule/recorder.h"

namespace moebius {

template <class Real>
struct HeldTensor {
  Tensor tensor;
  std::span<const Real> values;
};

// Real is float, or double where tests compare gradients with finite differences.
template <class Real>
class HostExecutor : public Executor {
 public:
  // The recorder outlives the executor. A layout that is folded is run_error: numbers need every rank.
  HostExecutor(const Layout& layout, Recorder& recorder, const HostOptions& options);
  ~HostExecutor() override;

  Time now() const override;  // since construction
  void submit(const Submission& submission) override;
  // Executor's contract; a rank that fails (sizes that do not match, a loss that is not finite) stops all
  // others and its error is thrown here. A deadlock is recognised when `until` is kForever.
  std::vector<Completion> wait(Time until) override;
  Time finish() override;

  // Between finish() and the next submit(). The loss of a step, summed over replicas and microbatches (ops
  // scale it to a mean per token); tensor-parallel members compute the same one, which counts once.
  double loss(int step) const;
  int num_steps() const;  // with a loss
  // By communication op, in the order of sequence, op.
  std::vector<Transfer> transfers() const;
  // Of every op when ranks run one at a time (HostOptions), else none.
  std::vector<OpTime> op_times() const;
  // A tensor of the whole run on one rank, row-major, by key; empty when the rank has not touched it, or
  // lives in another process.
  std::vector<Real> tensor(int rank, std::uint32_t key) const;
  // The same by what it is; CHECKs that there is one. Gradients are zero after an update.
  std::vector<Real> parameter(int rank, Role role, int layer) const;
  std::vector<Real> gradient(int rank, Role role, int layer) const;
  // Starting values of a parameter (and of the master copy); before its rank has touched it.
  void set_parameter(int rank, std::uint32_t key, std::vector<Real> values);
  RankBlock ranks_here() const;
  // Where several processes share the run, between two waits: see Course::stops().
  bool stops(bool asked);
  // The weights, or optimizer states, that a rank has touched; it lives here.
  std::vector<HeldTensor<Real>> held(int rank, MemoryKind memory) const;
  // Activations that are still kept for a backward pass.
  std::size_t num_microbatch_tensors(int rank) const;

 private:
  std::vector<Real> by_role(int rank, MemoryKind memory, Role role, int layer) const;

  struct State;
  std::unique_ptr<State> state_;
};

std::unique_ptr<HostExecutor<float>> make_host_executor(const Layout& layout, Recorder& recorder,
                                                        const HostOptions& options);

}  // namespace moebius
