// A service as a Workload: a serving system (system/serving_system.h) decides, under the clock of whoever
// executes, and what it decides becomes ops: iterations, one fragment a rank, issued when all ranks of the
// instance have ended the one before; caches on their way to where decoding goes on; keys of preempted
// sequences; weights of experts. Where nothing is under way and the next request is to come, its arrival is
// not waited for: the clock of the service goes on to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workloads/schedule/executor.h"
#include "workloads/serving/carried/carried_service.h"
#include "workloads/serving/carried/prompt_book.h"
#include "workloads/serving/figures.h"
#include "workloads/serving/plan.h"
#include "workloads/serving/system/expert_figures.h"
#include "workloads/training/state/memory.h"

namespace moebius {

class Serving : public Workload {
 public:
  explicit Serving(const ServingJob& job);  // see carried_alone()
  explicit Serving(const CarriedService& service);
  ~Serving() override;

  const Layout& layout() const override;
  // Submissions are numbered in the order in which things begin, in an iteration every class in turn. Each
  // comes after all that had ended before it began on its instance, so that what was issued can be issued
  // again, all at once.
  std::optional<Submission> next(Time now) override;
  void completed(const Completion& completion) override;
  bool done() const override;
  double progress() const override;
  Time due() const override;

  // Peak memory per class, against `capacity` of a device: weights, the whole cache, and the larger of a full
  // prefill and a full decode iteration.
  MemoryReport memory(Bytes capacity);
  std::string describe() const;  // one fact a line

  // Once it is done. `values` reads a kRank tensor of a rank, row-major.
  ServingFigures figures(const ServiceGoal& goal) const;
  const std::vector<RequestTimes>& times() const;  // by request
  const ServingSystem& system() const;
  const CarriedService& service() const;
  const PromptBook& prompts() const;
  std::optional<ExpertFigures> experts(int pool) const;  // nothing where none are placed
  using ReadTensor = std::function<std::vector<float>(int rank, std::uint32_t key)>;
  std::vector<std::vector<std::int32_t>> generated(const ReadTensor& values) const;  // by request

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A hash of tokens by request: equal for runs that generated the same.
std::uint64_t hash_of(const std::vector<std::vector<std::int32_t>>& tokens);

// "ep 2 x tp 4" where ranks of several replicas share each expert, "ep 8" otherwise.
std::string expert_degrees(const ServingPlan& plan);

}  // namespace moebius
