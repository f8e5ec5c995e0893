// A serving run as a Workload: all replicas go through iterations in step, since they share experts; each
// iteration is one fragment a rank, issued when all ranks have ended the one before.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workloads/schedule/executor.h"
#include "workloads/serving/figures.h"
#include "workloads/serving/plan.h"
#include "workloads/training/state/memory.h"

namespace moebius {

class Serving : public Workload {
 public:
  explicit Serving(const ServingJob& job);
  ~Serving() override;

  const Layout& layout() const override;
  // Submissions are numbered iteration by iteration, every class in turn.
  std::optional<Submission> next(Time now) override;
  void completed(const Completion& completion) override;
  bool done() const override;
  double progress() const override;

  // Peak memory per class, against `capacity` of a device: weights, the whole cache, and the larger of a full
  // prefill and a full decode iteration.
  MemoryReport memory(Bytes capacity);
  std::string describe() const;  // one fact a line

  // Once it is done. `values` reads a kRank tensor of a rank, row-major.
  ServingFigures figures(const ServiceGoal& goal) const;
  using ReadTensor = std::function<std::vector<float>(int rank, std::uint32_t key)>;
  std::vector<std::vector<std::int32_t>> generated(const ReadTensor& values) const;  // by request

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A hash of tokens by request: equal for runs that generated the same.
std::uint64_t hash_of(const std::vector<std::vector<std::int32_t>>& tokens);

}  // namespace moebius
