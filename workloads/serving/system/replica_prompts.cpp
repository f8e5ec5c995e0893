// How a replica's prompts are computed: who is admitted, in what parts they go, what becomes of them.
#include <algorithm>
#include <utility>

#include "hw/error.h"
#include "workloads/serving/system/replica.h"

namespace moebius {
namespace {

// Pairs of the tokens from `past` on, `count` of them, each with itself and all before it.
std::int64_t causal_pairs(std::int64_t past, std::int64_t count) {
  return count * past + count * (count + 1) / 2;
}

}  // namespace

std::int32_t Replica::take_chunk(Prefilling& prefilling, std::int64_t budget) {
  const std::int32_t left = prefilling.sequence.prompt - prefilling.done;
  prefilling.chunk = rules_.chunked ? static_cast<std::int32_t>(std::min<std::int64_t>(left, budget)) : left;
  prefilling.begun = now_;
  shape_.prefill_tokens += prefilling.chunk;
  shape_.prefill_pairs += causal_pairs(prefilling.done, prefilling.chunk);
  shape_.prefill_past += prefilling.done;
  ++shape_.prefill_sequences;
  longest_ = std::max(longest_, prefilling.chunk);
  longest_past_ = std::max(longest_past_, prefilling.done);
  return prefilling.chunk;
}

// Rows that a prompt has still to compute: of one that has begun, or else of the next that waits, but for
// blocks that are here. 0: nobody waits.
std::int64_t Replica::left_of(std::size_t index) const {
  if (index < prefilling_.size())
    return std::int64_t{prefilling_[index].sequence.prompt} - prefilling_[index].done;
  const std::size_t at = next_waiting();
  if (at >= seen_) return 0;
  const Sequence& next = waiting_[at];
  const std::int64_t there = block_pages() > 0 ? index_.match(next.chain) * rules_.shared_tokens : 0;
  return std::max<std::int64_t>(1, next.prompt - there);
}

// What has to be computed whole, or as a further row of the length of the longest, waits where it would be
// too much beside others.
bool Replica::fits_beside(std::size_t index, std::int64_t budget) const {
  if (shape_.prefill_tokens == 0 || (rules_.chunked && !rules_.padded)) return true;
  const std::int64_t left = left_of(index);
  if (!rules_.chunked && left > budget) return false;
  return !rules_.padded ||
         (shape_.prefill_sequences + 1) * std::max<std::int64_t>(longest_, left) <= rules_.token_budget;
}

// Every prompt has as many rows as the longest, and each row the keys that it would have there.
void Replica::pad() {
  const std::int64_t rows = std::int64_t{shape_.prefill_sequences} * longest_;
  shape_.padding = rows - shape_.prefill_tokens;
  shape_.prefill_tokens = rows;
  shape_.prefill_pairs = shape_.prefill_sequences * causal_pairs(longest_past_, longest_);
}

void Replica::plan_prefill(std::int64_t budget) {
  for (std::size_t i = 0; budget > 0; ++i) {
    if (!fits_beside(i, budget) || (i == prefilling_.size() && !admit_next())) return;
    budget -= take_chunk(prefilling_[i], budget);
  }
}

// Blocks of prefixes that nobody uses are as good as free: they go when room is made. Alone, a request needs
// no reserve.
bool Replica::is_blocked(std::int32_t id) const {
  if (blocked_.id != id || occupied_ == 0 || free_pages() > blocked_.free ||
      index_.resident() != blocked_.resident)
    return false;
  return kept_for_others() >= blocked_.kept;
}

// One that was driven out meets blocks of its own: those say nothing of what requests share.
void Replica::count_prefix(const Prefilling& prefilling) {
  prefixes_.prompt_tokens += prefilling.sequence.prompt;
  prefixes_.reused_tokens += prefilling.done;
  prefixes_.asked_blocks += static_cast<std::int64_t>(prefilling.sequence.chain.size());
  prefixes_.hit_blocks += prefilling.lease.blocks();
}

// Pages for the whole prompt, so that a prompt once begun is never stuck.
bool Replica::admit_next() {
  const std::size_t at = next_waiting();
  if (at >= seen_ || occupied_ >= rules_.max_running || !swapped_.empty()) return false;
  const Sequence next = waiting_[at];
  if (is_blocked(next.id)) return false;
  Prefilling prefilling{next};
  const kv::BlockIndex::Found there_already =
      block_pages() > 0 ? index_.find(next.chain) : kv::BlockIndex::Found{};
  const std::int64_t pages = held_by_prompt(next.prompt) - there_already.blocks * block_pages();
  const std::int64_t needed = pages + kept_free(next.prompt, next.output - 1, true);
  // Blocks that it would share and nobody uses now count as free.
  if (needed + there_already.idle * block_pages() > free_pages()) {
    blocked_ = {next.id, free_pages(), kept_for_others(), index_.resident()};
    return false;
  }
  if (block_pages() > 0) index_.acquire(next.chain, prefilling.lease);
  CHECK(make_room(needed), "room for a prompt that was found to fit");
  // The last token is computed in any case: the next one follows from it.
  const std::int64_t there = prefilling.lease.blocks() + load(next, prefilling.lease.blocks());
  prefilling.done =
      std::min<std::int32_t>(next.prompt - 1, static_cast<std::int32_t>(there) * rules_.shared_tokens);
  if (!next.since) count_prefix(prefilling);
  waiting_tokens_ -= prefilling.done;
  blocked_ = {};
  hold(pages);
  if (tables_ != nullptr) tables_->begin(next.id, next.chain.first(prefilling.lease.slots.size()), pages);
  ++occupied_;
  const std::int64_t asked = to_come(next.prompt, next.output - 1);
  to_come_ += asked;
  newcomers_to_come_ += asked;
  admitted_.push_back(next.id);
  shape_.images += next.images;
  waiting_images_ -= next.images;
  prefilling_.push_back(std::move(prefilling));
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
  --seen_, --known_;
  if (at < driven_out_) --driven_out_;
  if (!next.since) waiting_prompts_[next.priority] -= next.prompt;
  return true;
}

void Replica::complete_prefill(Time end, StepOutcome& outcome) {
  std::size_t kept = 0;
  for (Prefilling& prefilling : prefilling_) {
    prefilling.done += prefilling.chunk;
    waiting_tokens_ -= prefilling.chunk;
    Sequence& sequence = prefilling.sequence;
    if (prefilling.done < sequence.prompt) {
      if (&prefilling_[kept] != &prefilling) prefilling_[kept] = std::move(prefilling);
      ++kept;
      continue;
    }
    held_ -= held_by_prompt(sequence.prompt) - held_by(sequence.prompt);
    newcomers_to_come_ -= to_come(sequence.prompt, sequence.output - 1);
    outcome.prefilled.push_back(sequence.id);
    ++outcome.tokens;
    if (sequence.since) outcome.gaps.push_back({end - *sequence.since, 1});
    --sequence.output;
    const Decoding next{sequence.id, sequence.prompt,   sequence.output, share(prefilling),
                        end,         sequence.priority, sequence.number, sequence.generated + 1};
    if (next.left == 0) {
      outcome.finished.push_back(next.id);
      leave(next);
    } else if (rules_.hands_over) {
      handed_over_.push_back({next, {prefilling.begun, prefilling.chunk}});
    } else {
      decode(next);
    }
  }
  prefilling_.resize(kept);
}

}  // namespace moebius
