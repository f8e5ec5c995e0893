// How a replica drives sequences out when its cache is full, and takes them back.
#include <cmath>

#include "workloads/serving/system/replica.h"

namespace moebius {

void SwapTotals::add(const SwapTotals& other) {
  sequences += other.sequences;
  out_tokens += other.out_tokens;
  in_tokens += other.in_tokens;
}

std::int64_t Replica::growth() const {
  std::int64_t pages = 0;
  for (const Decoding& sequence : decoding_) pages += growth_of(sequence);
  return pages;
}

std::int64_t Replica::growth_of(const Decoding& sequence) const {
  const std::int32_t rows = 1 + rules_.speculation.drafts;
  return held_by(std::int64_t{sequence.context} + rows) - held_by(sequence.context);
}

void Replica::make_room_for_growth() {
  std::int64_t pages = growth();
  bool drove_out = false;
  while (!make_room(pages) && !decoding_.empty()) {
    preempt_youngest();
    pages = growth();
    drove_out = true;
  }
  follow_reserve(drove_out);
  changes_ += static_cast<std::int32_t>(pages);
  hold(pages);
  to_come_ -= pages;
  if (tables_ == nullptr) return;
  for (const Decoding& sequence : decoding_) tables_->grow(sequence.id, growth_of(sequence));
}

// What it has generated becomes part of the prompt that is computed again.
void Replica::preempt_youngest() {
  const Decoding sequence = decoding_.back();
  decoding_.pop_back();
  const auto shared = shared_.find(sequence.id);
  const kv::Chain chain = shared == shared_.end() ? kv::Chain{} : shared->second.chain;
  context_ -= sequence.context;
  leave(sequence);
  preempted_.push_back(sequence.id);
  if (swap_out(sequence)) return;
  // The token that was sampled last is not in the cache yet.
  waiting_.push_front({.id = sequence.id,
                       .prompt = sequence.context + 1,
                       .output = sequence.left,
                       .chain = chain,
                       .priority = sequence.priority,
                       .since = sequence.since,
                       .generated = sequence.generated,
                       .number = sequence.number});
  waiting_tokens_ += sequence.context + 1;
  ++seen_, ++known_, ++driven_out_;
}

// As tokens of all layers.
std::int64_t Replica::kept_tokens(std::int64_t tokens) const {
  return std::llround(rules_.parts.kept(static_cast<double>(tokens), rules_.page_tokens));
}

// Whole, the blocks that it shared too: others may not need them any more when it comes back.
bool Replica::swap_out(const Decoding& sequence) {
  const std::int64_t pages = rules_.parts.held(pages_of(sequence.context));
  if (swapped_pages_ + pages > rules_.host_pages) return false;
  swapped_pages_ += pages;
  if (tables_ != nullptr) tables_->swap_out(sequence.id, sequence.context);
  swapped_.push_front(sequence);
  swapped_.front().shared = 0;
  ++swaps_.sequences;
  swaps_.out_tokens += sequence.context;
  shape_.swapped_out += kept_tokens(sequence.context);
  return true;
}

// Those that were driven out come back before anybody new, with room for what all will add next.
void Replica::swap_in() {
  const std::int32_t rows = 1 + rules_.speculation.drafts;
  while (!swapped_.empty()) {
    const Decoding next = swapped_.front();
    if (occupied_ >= rules_.max_running || !make_room(held_by(next.context + rows) + growth())) return;
    swapped_.pop_front();
    swapped_pages_ -= rules_.parts.held(pages_of(next.context));
    hold(held_by(next.context));
    if (tables_ != nullptr) tables_->swap_in(next.id, next.context, held_by(next.context));
    ++occupied_;
    to_come_ += to_come(next.context, next.left);
    decode(next);
    swapped_in_.push_back(next.id);
    swaps_.in_tokens += next.context;
    shape_.swapped_in += kept_tokens(next.context);
  }
}

}  // namespace moebius
