#include "workloads/serving/batching.h"

#include <algorithm>
#include <utility>

#include "workloads/routing/routing.h"

namespace moebius {
namespace {

enum LengthStream : std::uint64_t { kInputStream = 0x696e7075, kOutputStream = 0x6f757470 };

int draw_length(const LengthRange& range, std::uint64_t bits) {
  return range.low + static_cast<int>(random_unit(bits) * (range.high - range.low + 1));
}

// What the cache holds of a request at most: the last token is never fed back.
std::int64_t cached_tokens(std::int64_t prompt, std::int64_t output) {
  return prompt + output - 1;
}

std::int32_t pages_of(const ServingPlan& plan, const std::deque<ServedRequest>& requests) {
  std::int64_t longest = 1;
  for (const ServedRequest& r : requests) longest = std::max(longest, cached_tokens(r.prompt, r.output));
  const auto together = std::min<std::int64_t>(plan.max_batch, static_cast<std::int64_t>(requests.size()));
  return static_cast<std::int32_t>(together * pages_for(longest, plan.block_tokens) + 1);
}

}  // namespace

RequestLengths lengths_of(const ServingWorkload& workload, int request) {
  return {draw_length(workload.input, random_bits(workload.seed, kInputStream, request)),
          draw_length(workload.output, random_bits(workload.seed, kOutputStream, request))};
}

std::int32_t cache_pages(const ServingPlan& plan, const ServingWorkload& workload) {
  const std::int64_t longest = cached_tokens(workload.input.high, workload.output.high);
  const int of_replica = (workload.requests + plan.dp - 1) / plan.dp;
  return std::min(plan.max_batch, of_replica) * pages_for(longest, plan.block_tokens) + 1;
}

Batching::Batching(const ServingPlan& plan, std::deque<ServedRequest> waiting)
    : plan_(plan),
      waiting_(std::move(waiting)),
      pool_(pages_of(plan, waiting_)),
      padding_page_(pool_.take()) {}

bool Batching::done() const {
  const auto complete = [](const ServedRequest& r) { return r.generated == r.output; };
  return waiting_.empty() && std::all_of(running_.begin(), running_.end(), complete);
}

void Batching::retire() {
  const auto gone = std::stable_partition(running_.begin(), running_.end(),
                                          [](const ServedRequest& r) { return r.generated < r.output; });
  for (auto request = gone; request != running_.end(); ++request) {
    for (const std::int32_t page : request->pages) pool_.give(page);
  }
  running_.erase(gone, running_.end());
}

Batch Batching::next() {
  retire();
  const bool room = static_cast<int>(running_.size()) < plan_.max_batch;
  if (!waiting_.empty() && room) return prefill();
  return running_.empty() ? padding() : decode();
}

BatchSequence Batching::admit(ServedRequest request) {
  for (int i = 0; i < pages_for(request.prompt, plan_.block_tokens); ++i)
    request.pages.push_back(pool_.take());
  request.generated = 1;
  BatchSequence sequence{request.id, request.prompt, 0, request.prompt, request.pages};
  running_.push_back(std::move(request));
  return sequence;
}

Batch Batching::prefill() {
  Batch batch{plan_.block_tokens, {}};
  std::int64_t tokens = 0;
  while (!waiting_.empty() && static_cast<int>(running_.size()) < plan_.max_batch) {
    tokens += waiting_.front().prompt;
    if (!batch.sequences.empty() && tokens > plan_.token_budget) break;
    batch.sequences.push_back(admit(std::move(waiting_.front())));
    waiting_.pop_front();
  }
  return batch;
}

Batch Batching::decode() {
  Batch batch{plan_.block_tokens, {}};
  for (ServedRequest& request : running_) {
    const std::int32_t position = request.prompt + request.generated - 1;
    if (position / plan_.block_tokens >= static_cast<std::int32_t>(request.pages.size()))
      request.pages.push_back(pool_.take());
    batch.sequences.push_back({request.id, request.prompt, position, 1, request.pages});
    ++request.generated;
  }
  return batch;
}

Batch Batching::padding() const {
  return {plan_.block_tokens, {{-1, 1, 0, 1, {padding_page_}}}};
}

}  // namespace moebius
