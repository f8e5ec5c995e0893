#include "workloads/serving/system/iteration_timer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "workloads/serving/kv/page_pool.h"

namespace moebius {
namespace {

class BatchMaker {
 public:
  explicit BatchMaker(std::int32_t page_tokens) { batch_.page_tokens = page_tokens; }

  void add(std::int32_t past, std::int32_t count) {
    BatchSequence sequence{request_++, past + count, past, count, {}};
    for (std::int32_t p = pages_for(past + count, batch_.page_tokens); p > 0; --p)
      sequence.pages.push_back(page_++);
    batch_.sequences.push_back(std::move(sequence));
  }
  Batch take() { return std::move(batch_); }

 private:
  Batch batch_;
  std::int32_t request_ = 0, page_ = 0;
};

// A whole prompt of n tokens has (n + 1) / 2 keys a token.
void add_prompts(BatchMaker& maker, std::int64_t tokens, std::int64_t keys) {
  const std::int64_t whole = std::max<std::int64_t>(1, 2 * keys - 1);
  if (whole >= tokens) {
    maker.add(static_cast<std::int32_t>(keys - (tokens + 1) / 2), static_cast<std::int32_t>(tokens));
    return;
  }
  for (std::int64_t left = tokens; left > 0; left -= whole)
    maker.add(0, static_cast<std::int32_t>(std::min(left, whole)));
}

BatchPtr rows_only(std::int64_t rows, std::int32_t page_tokens) {
  BatchMaker maker(page_tokens);
  maker.add(0, static_cast<std::int32_t>(std::max<std::int64_t>(1, rows)));
  return std::make_shared<const Batch>(maker.take());
}

}  // namespace

Batch batch_of(const StepPoint& point, std::int32_t page_tokens) {
  BatchMaker maker(page_tokens);
  if (point.prefill_tokens > 0)
    add_prompts(maker, point.prefill_tokens, std::max<std::int64_t>(point.prefill_keys, 1));
  for (std::int64_t i = 0; i < point.decode_sequences; ++i)
    maker.add(static_cast<std::int32_t>(std::max<std::int64_t>(1, point.decode_keys) - 1), 1);
  return maker.take();
}

IterationTimer::IterationTimer(const ServingJob& job, const Layout& layout, Executor& executor,
                               Recorder& recorder)
    : job_(job), layout_(layout), executor_(executor), recorder_(recorder), shape_(job), routes_(job) {}

double IterationTimer::seconds(const StepPoint& point) {
  const auto own = std::make_shared<const Batch>(batch_of(point, job_.plan.block_tokens));
  std::vector<BatchPtr> batches{own};
  const auto rows = static_cast<std::int64_t>(std::llround(point.others * static_cast<double>(own->rows())));
  batches.resize(job_.plan.dp, rows == own->rows() ? own : rows_only(rows, job_.plan.block_tokens));
  return seconds(batches);
}

double IterationTimer::seconds(const std::vector<BatchPtr>& batches) {
  routes_.begin(batches);
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(layout_.classes.size()); ++c) {
    const RankClass& of = layout_.classes[c];
    const ShardPosition shard{of.group(GroupRole::kTensor).my_index, of.group(GroupRole::kExpert).my_index};
    const int group = of.representative() / job_.plan.ep;
    const BatchPtr& batch = batches[of.representative() / job_.plan.tp];
    const Submission submission{
        .fragment = lower_iteration(
            shape_, {batch, shard, [&](int layer) { return routes_.get(group, layer); }}),
        .sequence = sequence_++,
        .rank_class = c,
        .step = step_,
        .microbatch = 0,
        .after = {}};
    recorder_.submitted(submission);
    executor_.submit(submission);
  }
  ++step_;
  const Time begun = end_;
  end_ = std::max(end_, executor_.finish());
  return (end_ - begun).seconds();
}

}  // namespace moebius
