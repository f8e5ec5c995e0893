#include "workloads/serving/system/replica.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/serving/latent_parts.h"

namespace moebius {
void StepOutcome::clear() {
  prefilled.clear();
  finished.clear();
  gaps.clear();
  tokens = 0;
}

Replica::Replica(const ReplicaRules& rules)
    : rules_(rules),
      index_(kv::BlockIndex::kUnbounded,
             kv::make_eviction(rules.eviction, {.depth_cost = rules.depth_cost})) {
  CHECK(rules.shared_tokens % rules.page_tokens == 0,
        fmt::format("blocks of {} tokens in pages of {}", rules.shared_tokens, rules.page_tokens));
  CHECK(rules.pages > 0 && rules.page_tokens > 0 && rules.token_budget > 0 && rules.max_running > 0,
        fmt::format("pages={} page_tokens={} token_budget={} max_running={}", rules.pages, rules.page_tokens,
                    rules.token_budget, rules.max_running));
  block_pages_ = std::int64_t{rules.shared_tokens / rules.page_tokens} * rules.parts.whole;
  const auto tokens = static_cast<std::uint32_t>(rules.page_tokens);
  if (std::has_single_bit(tokens)) page_shift_ = std::countr_zero(tokens);
  begin_reserve();
}

void Replica::use_tiers(TiersBelow& below) {
  touch();
  below_ = &below;
  index_.keep_evicted();
}

void Replica::place_pages(kv::PageTables& tables) {
  touch();
  tables_ = &tables;
  index_.keep_evicted();
}

std::int64_t Replica::pages_of(std::int64_t tokens) const {
  const std::int64_t rounded = tokens + rules_.page_tokens - 1;
  return page_shift_ >= 0 ? rounded >> page_shift_ : rounded / rules_.page_tokens;
}

std::int64_t Replica::held_by(std::int64_t tokens) const {
  return rules_.parts.held(pages_of(std::max<std::int64_t>(tokens, rules_.slot_tokens)));
}

std::int64_t Replica::held_by_prompt(std::int64_t tokens) const {
  return rules_.parts.held_by_prompt(pages_of(std::max<std::int64_t>(tokens, rules_.slot_tokens)));
}

// The last token is never fed back. One that is driven out comes back as a prompt of all it had.
bool Replica::fits(std::int32_t prompt, std::int32_t output) const {
  const std::int64_t tokens = std::int64_t{prompt} + (rules_.hands_over ? 0 : output - 1);
  const std::int64_t most = tokens + rules_.speculation.drafts;
  const std::int64_t pages = std::max(held_by(most), held_by_prompt(tokens));
  return pages <= rules_.pages && (rules_.slot_tokens == 0 || most <= rules_.slot_tokens);
}

void Replica::enqueue(const Sequence& sequence) {
  touch();
  waiting_tokens_ += sequence.prompt;
  expected_ = std::max<std::int64_t>(0, expected_ - 1);
  expected_tokens_ = std::max<std::int64_t>(0, expected_tokens_ - sequence.prompt);
  waiting_prompts_[sequence.priority] += sequence.prompt;
  waiting_images_ += sequence.images;
  waiting_.push_back(sequence);
}

// The first one that is not seen comes behind those that are with its priority or a higher one.
void Replica::see_next() {
  const Sequence next = waiting_[seen_];
  const auto begin = waiting_.begin();
  const auto sorted = begin + static_cast<std::ptrdiff_t>(driven_out_);
  auto at =
      std::upper_bound(sorted, begin + static_cast<std::ptrdiff_t>(seen_), next.priority,
                       [](std::int32_t priority, const Sequence& of) { return priority > of.priority; });
  if (at == sorted)
    while (at != begin && std::prev(at)->priority < next.priority) --at;
  const auto place = static_cast<std::size_t>(at - begin);
  if (place == 0) blocked_ = {};  // another one is next
  if (place < driven_out_) ++driven_out_;
  if (place != seen_) {
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(seen_));
    waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(place), next);
  }
  ++seen_;
}

void Replica::hold(std::int64_t pages) {
  held_ += pages;
  peak_pages_ = std::max(peak_pages_, used_by_all());
}

std::int64_t Replica::used_by_all() const {
  std::int64_t sum = used();
  for (const Replica* other : beside_) sum += other->used();
  return sum;
}

// Blocks that nobody uses go, those not used for longest first; its own before those of others. None go where
// all of them would not do.
bool Replica::make_room(std::int64_t pages) {
  if (pages > free_pages()) return false;
  evict(used_by_all() + pages - rules_.pages);
  for (std::size_t i = 0; i < beside_.size() && used_by_all() + pages > rules_.pages; ++i)
    beside_[i]->evict(used_by_all() + pages - rules_.pages);
  return used_by_all() + pages <= rules_.pages;
}

void Replica::evict(std::int64_t pages) {
  if (pages > 0 && block_pages() > 0) {
    touch();
    index_.evict((pages + block_pages() - 1) / block_pages());
  }
  if (!index_.evicted_blocks().empty()) {
    if (tables_ != nullptr) tables_->evict(index_.evicted_blocks());
    if (below_ != nullptr) loaded_ = std::max(loaded_, below_->take_in(index_.evicted_blocks(), now_));
    index_.forget_evicted();
  }
}

// The first one that does not wait for blocks from below.
std::size_t Replica::next_waiting() const {
  std::size_t at = 0;
  while (below_ != nullptr && at < waiting_.size() && !below_->may_start(waiting_[at].id, now_)) ++at;
  return at;
}

// Blocks that come from below instead of being computed.
std::int64_t Replica::load(const Sequence& next, std::int64_t there) {
  if (below_ == nullptr || next.chain.empty()) return 0;
  const LoadedBlocks loaded =
      below_->load({next.id, next.prompt, next.chain, there, now_, next.since.has_value()});
  loaded_ = std::max(loaded_, loaded.ready);
  return loaded.blocks;
}

void Replica::decode(const Decoding& sequence) {
  decoding_.push_back(sequence);
  context_ += sequence.context;
  ++changes_;
}

// Its pages are free; of shared blocks, for whoever comes next with the same prefix.
void Replica::leave(const Decoding& sequence) {
  held_ -= held_by(sequence.context) - sequence.shared;
  to_come_ -= to_come(sequence.context, sequence.left);
  if (tables_ != nullptr) tables_->leave(sequence.id);
  ++changes_;
  --occupied_;
  unshare(sequence.id);
}

void Replica::unshare(std::int32_t id) {
  const auto at = shared_.find(id);
  if (at == shared_.end()) return;
  index_.release(at->second.chain, at->second.lease);
  shared_.erase(at);
}

// Its whole blocks are computed: they go to the index, where others find them, and stay while it needs them.
// Returns their pages.
std::int32_t Replica::share(Prefilling& prefilling) {
  const kv::Chain chain = prefilling.sequence.chain;
  if (chain.empty() || block_pages() == 0) return 0;
  const auto blocks = static_cast<std::int64_t>(chain.size());
  if (below_ != nullptr) below_->computed(chain, prefilling.lease.blocks(), now_);
  held_ -= (blocks - prefilling.lease.blocks()) * block_pages();
  if (tables_ != nullptr) tables_->share(prefilling.sequence.id, chain);
  index_.extend(chain, prefilling.lease);
  shared_[prefilling.sequence.id] = {chain, std::move(prefilling.lease)};
  peak_pages_ = std::max(peak_pages_, used_by_all());
  return static_cast<std::int32_t>(blocks * block_pages());
}

// Which requests the loop knows of. While an iteration goes on, the one after it is decided already: what
// came since that began is left for another one.
void Replica::receive() {
  const bool idle = decoding_.empty() && prefilling_.empty() && swapped_.empty();
  const std::size_t known = rules_.decided_ahead && !idle ? known_ : waiting_.size();
  known_ = waiting_.size();
  if (++unseen_for_ < rules_.receive_every && !idle && !prompts_before_) return;
  unseen_for_ = 0;
  while (seen_ < known) see_next();
}

// Whether prompts wait for more of them.
bool Replica::gathers() {
  if (rules_.gather_iterations == 0 || decoding_.empty() || !prefilling_.empty() || seen_ == 0) return false;
  auto rows = static_cast<double>(decoding_.size()) * (1 + rules_.speculation.drafts);
  const double enough = rules_.gather_share * static_cast<double>(rules_.token_budget);
  for (std::size_t i = 0; i < seen_ && rows < enough; ++i) rows += waiting_[i].prompt;
  if (rows < enough && gathered_for_ < rules_.gather_iterations) {
    ++gathered_for_;
    return true;
  }
  gathered_for_ = 0;
  return false;
}

const StepShape& Replica::plan(Time now, bool prompts) {
  touch();
  receive();
  if (gathers()) prompts = false;
  now_ = loaded_ = now;
  // What a decision without rows drove out is on its way still.
  const std::int64_t on_its_way = shape_.empty() ? shape_.swapped_out : 0;
  shape_ = kNoStep;
  shape_.swapped_out = on_its_way;
  admitted_.clear();
  preempted_.clear();
  swapped_in_.clear();
  longest_ = longest_past_ = 0;
  for (Prefilling& prefilling : prefilling_) prefilling.chunk = 0;
  if (rules_.policy == BatchPolicy::kMixed) {
    plan_decode();
    if (prompts) plan_prefill(rules_.token_budget - shape_.decode_tokens);
  } else {
    if (prompts) plan_prefill(rules_.token_budget);
    if (shape_.empty()) plan_decode();
  }
  return decided();
}

const StepShape& Replica::plan_prompts() {
  touch();
  plan_prefill(rules_.token_budget);
  return decided();
}

const StepShape& Replica::decided() {
  prompts_before_ = shape_.prefill_tokens > 0;
  if (shape_.empty()) return shape_;
  shape_.changes = changes_ + shape_.prefill_sequences;
  changes_ = 0;
  shape_.absorbed = absorbs(rules_.absorbed_below, shape_.prefill_past);
  if (rules_.padded && shape_.prefill_tokens > 0) pad();
  return shape_;
}

std::int64_t Replica::prompts_ending() const {
  return std::count_if(prefilling_.begin(), prefilling_.end(), [](const Prefilling& prefilling) {
    return prefilling.chunk > 0 && prefilling.done + prefilling.chunk == prefilling.sequence.prompt;
  });
}

std::vector<PlannedPart> Replica::parts() const {
  std::vector<PlannedPart> parts;
  for (const Prefilling& prefilling : prefilling_)
    if (prefilling.chunk > 0) parts.push_back({prefilling.sequence.id, prefilling.done, prefilling.chunk});
  if (shape_.decode_sequences == 0) return parts;
  for (const Decoding& sequence : decoding_)
    parts.push_back({sequence.id, sequence.context, 1 + rules_.speculation.drafts});
  return parts;
}

std::int64_t Replica::tokens_to_come() const {
  std::int64_t tokens = prompts_ending();
  if (shape_.decode_sequences == 0) return tokens;
  if (rules_.speculation.drafts == 0) return tokens + shape_.decode_sequences;
  for (const Decoding& sequence : decoding_) tokens += tokens_of(sequence);
  return tokens;
}

void Replica::complete(Time end, StepOutcome& outcome) {
  touch();
  now_ = end;
  if (shape_.decode_sequences > 0) complete_decode(end, outcome);
  if (shape_.prefill_tokens > 0) complete_prefill(end, outcome);
  shape_ = kNoStep;
}

}  // namespace moebius
