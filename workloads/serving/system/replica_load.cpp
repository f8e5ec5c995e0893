// What others may know of a replica: what is before it, what it has room for, what it has of a prompt.
#include "workloads/serving/system/replica.h"

namespace moebius {

void PrefixTotals::add(const PrefixTotals& other) {
  prompt_tokens += other.prompt_tokens;
  reused_tokens += other.reused_tokens;
  asked_blocks += other.asked_blocks;
  hit_blocks += other.hit_blocks;
}

void DraftTotals::add(const DraftTotals& other) {
  guessed += other.guessed;
  held += other.held;
}

void ReplicaLoad::add(const ReplicaLoad& other, int times) {
  waiting += other.waiting * times;
  running += other.running * times;
  prompt_tokens += other.prompt_tokens * times;
  context_tokens += other.context_tokens * times;
  expected += other.expected * times;
  expected_tokens += other.expected_tokens * times;
  pages += other.pages * times;
  images += other.images * times;
}

std::int64_t Replica::prompt_tokens_before(std::int32_t priority) const {
  std::int64_t tokens = waiting_tokens_ - (shape_.prefill_tokens - shape_.padding);
  for (auto at = waiting_prompts_.begin(); at != waiting_prompts_.end() && at->first < priority; ++at)
    tokens -= at->second;
  return tokens;
}

std::int64_t Replica::free_pages() const {
  std::int64_t pages = rules_.pages - in_use();
  for (const Replica* other : beside_) pages -= other->in_use();
  return pages;
}

std::int64_t Replica::hit_tokens(kv::Chain chain) const {
  if (rules_.shared_tokens == 0) return 0;
  const std::int64_t there = index_.match(chain);
  return (there + (below_ != nullptr ? below_->near(chain, there) : 0)) * rules_.shared_tokens;
}

void Replica::expect(std::int32_t prompt) {
  touch();
  ++expected_;
  expected_tokens_ += prompt;
}

ReplicaLoad Replica::load() const {
  return {.waiting = static_cast<std::int64_t>(waiting_.size() + swapped_.size()),
          .running = occupied_,
          .prompt_tokens = waiting_tokens_,
          .context_tokens = context_,
          .expected = expected_,
          .expected_tokens = expected_tokens_,
          .pages = used(),
          .images = waiting_images_};
}

}  // namespace moebius
