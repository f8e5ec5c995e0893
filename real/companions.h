// What a run that computes numbers starts from and what it leaves behind, whoever executes it: weights and
// optimizer state of a checkpoint, a checkpoint, a dump of activations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/constants.h"
#include "real/activation_dump.h"
#include "real/host/op_context.h"
#include "workloads/checkpoint/checkpoint.h"
#include "workloads/checkpoint/optimizer_state.h"
#include "workloads/perform/perform.h"

namespace moebius {

// What the command line asks a run for, beside its scenario.
struct RealRun {
  std::string dump_activations = {};  // a file; empty: none
  std::string trace_kernels = {};     // cuda: a file for what ran for each op (cuda/op_trace.h); empty: none
  Processes* processes = nullptr;     // host: that share the run; null: this one alone
  // Ranks take turns, so that times of ops are their own: on the host each op is timed
  // (StartedExecutor::durations).
  bool measured = false;
};

using ReadHeld = std::function<std::vector<HeldValues>(std::int32_t rank, MemoryKind memory)>;

class Companions {
 public:
  // Outlived by job and layout. input_error when the checkpoint to start from does not go with the scenario,
  // or that to be left cannot go where it says.
  Companions(const Job& job, const Layout& layout, const RealRun& request);

  // Of the model's arithmetic, as config.json beside the weights says, or the one that describes the model.
  const Constants& constants() const { return constants_; }
  // For the executor's options; empty where the scenario asks for nothing of the kind. They use this object.
  StartingValues weights() const;
  StackedRowsOf stacked() const;
  StartingStates states() const;
  OpObserver observer();

  // Afterwards. Writes the checkpoint of the scenario, `step` steps being done, with what the ranks hold.
  void save(int step, const ReadHeld& held) const;
  void write_activations() const;  // where they were asked for

 private:
  bool starts_from_checkpoint() const { return job_.scenario.weights != "random"; }
  bool saves_where_it_started() const;
  void open_checkpoint();
  void read_constants();
  std::string config() const;

  const Job& job_;
  const Layout& layout_;
  std::string activations_path_;
  Constants constants_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<OptimizerState> state_;
  std::unique_ptr<ActivationDump> activations_;
  mutable bool saved_ = false;  // the directory is there and this run's own
};

// What a started executor does with them, once its options are made: saves, leaves, tells where it started.
void accompany(StartedExecutor& engine, const Job& job, const std::shared_ptr<Companions>& companions,
               const ReadHeld& held);

// input_error when a run that only simulates is asked for what is computed: a checkpoint, a dump of
// activations.
void require_nothing_computed(const Job& job, const RealRun& request);

}  // namespace moebius
