// A training run as a Workload: fragments are lowered once for all ranks that share them, then issued pass by
// pass in the order of the pipeline schedule, a bounded number ahead of what has completed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/model.h"
#include "workloads/routing/expert_loads.h"
#include "workloads/schedule/executor.h"
#include "workloads/training/device_speeds.h"
#include "workloads/training/plan.h"
#include "workloads/training/state/memory.h"

namespace moebius {

struct TrainingJob {
  Model model;
  TrainingPlan plan;
  TrainingWorkload workload;
  int ranks_per_node = 1;  // of the cluster: which members of an expert group share a node
  std::vector<std::int32_t> column_kinds = {};    // see columns.h; none: all alike
  std::optional<DeviceSpeeds> speeds = {};        // none: all as their kind
  std::vector<std::int32_t> device_of_rank = {};  // placement; none: rank i stands on device i
};

class Training : public Workload {
 public:
  explicit Training(const TrainingJob& job);
  ~Training() override;

  const Layout& layout() const override;
  // Submissions are numbered turn by turn (issue_turns() in pipeline.h), in a turn by class: the same on
  // every executor.
  std::optional<Submission> next(Time now) override;
  void completed(const Completion& completion) override;
  bool done() const override;
  double progress() const override;

  // A run in stretches. Steps that have been begun, those before the run's first one included; when done(),
  // they are complete once everything submitted is.
  int steps_begun() const;
  // Nothing of this step or later ones is issued, but what has begun is finished; done() until go_on().
  void stop_before(int step);
  void go_on();        // everything submitted has completed
  void begin_again();  // done, and everything submitted has completed: the same once more, from the first op
  // From now on no class has more than the passes of so many steps on their way, unless it needs them.
  void stay_within(int steps);

  // Peak memory per class, against `capacity` of a device.
  MemoryReport memory(Bytes capacity);
  // From now on, memory in use goes to `recorder` as a counter whenever a pass completes.
  void record_memory(Recorder& recorder);
  // Of the steps issued so far. Empty without experts.
  const ExpertLoads& expert_loads() const;
  // Which layers stand on which stage, microbatches, groups: one fact a line.
  std::string describe() const;

 private:
  struct State;
  MemoryReport memory_of_classes();

  std::unique_ptr<State> state_;
};

}  // namespace moebius
