#include "workloads/serving/system/pipeline_cost.h"

#include <algorithm>

namespace moebius {
namespace {

std::int64_t most_rows(std::span<const StepShape> replicas) {
  std::int64_t most = 0;
  for (const StepShape& shape : replicas) most = std::max(most, shape.rows());
  return most;
}

double share_of_prompts(std::span<const StepShape> replicas) {
  std::int64_t rows = 0, prompts = 0;
  for (const StepShape& shape : replicas) rows += shape.rows(), prompts += shape.prefill_tokens;
  return rows > 0 ? static_cast<double>(prompts) / static_cast<double>(rows) : 0;
}

}  // namespace

void PipelineCost::Totals::add(const Totals& other) {
  busy.resize(std::max(busy.size(), other.busy.size()));
  for (std::size_t i = 0; i < other.busy.size(); ++i) busy[i] += other.busy[i];
  waited += other.waited;
  handed_on += other.handed_on;
  batches += other.batches;
  all += other.all;
  prompts += other.prompts;
}

double PipelineCost::seconds(std::span<const StepShape> replicas) {
  const double begin = now_.seconds();
  double there = begin, goes_on = begin;
  const std::int64_t rows = most_rows(replicas);
  const double of_prompts = share_of_prompts(replicas);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const double starts = std::max(there, free_[s]);
    const double takes = stages_[s].cost->seconds(replicas), handed = stages_[s].hand_on(rows);
    waited_ += starts - there;
    busy_[s] += takes;
    prompts_ += takes * of_prompts;
    handed_on_ += handed;
    free_[s] = starts + takes;
    there = free_[s] + handed;
    if (s == 0) goes_on = free_[s];
  }
  batches_ += 1;
  all_ += there - begin;
  return gives_tokens_ ? there - begin : goes_on - begin;
}

// What each stage takes longer; batches behind this one are held up by the slowest alone.
StepStalls PipelineCost::stalls(std::span<const StepShape> replicas, double) {
  StepStalls sum;
  for (const Stage& stage : stages_) sum.add(stage.cost->stalls(replicas, stage.cost->forecast(replicas)), 1);
  return sum;
}

// One pipeline speaks for all of its pool, so that what is under way in it does not count.
double PipelineCost::forecast(std::span<const StepShape> replicas) {
  double through = 0, slowest = 0;
  const std::int64_t rows = most_rows(replicas);
  for (const Stage& stage : stages_) {
    const double takes = stage.cost->forecast(replicas);
    slowest = std::max(slowest, takes);
    through += takes + stage.hand_on(rows);
  }
  return std::max(through, static_cast<double>(stages_.size()) * slowest);
}

}  // namespace moebius
