// A training run as a Workload: fragments built once per pipeline stage, then issued microbatch by microbatch
// in the order of the pipeline schedule, a few ahead of what has completed.
#pragma once

#include <memory>

#include "hw/cluster.h"
#include "models/model.h"
#include "workloads/schedule/executor.h"
#include "workloads/training/memory.h"
#include "workloads/training/plan.h"

namespace moebius {

struct TrainingJob {
  Model model;
  TrainingPlan plan;
  TrainingWorkload workload;
};

// Lowers the job to frozen fragments. `ranks_per_node` and `capacity` come from the cluster.
class Training : public Workload {
 public:
  Training(const TrainingJob& job, int ranks_per_node);
  ~Training() override;

  const Layout& layout() const override;
  std::optional<Submission> next(Time now) override;
  void completed(const Completion& completion) override;
  bool done() const override;
  double progress() const override;

  // Peak memory per class against `capacity` bytes of a device.
  MemoryReport memory(Bytes capacity) const;
  // Layers of each pipeline stage, and other facts that `check` prints, one per line.
  std::string describe() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace moebius
