#include "workloads/serving/system/tiers/global_index.h"

namespace moebius {
namespace {

// Nodes from `asking` on in a circle; host memory comes first.
std::int64_t rank_of(BlockPlace place, std::int32_t asking) {
  constexpr std::int64_t kCircle = std::int64_t{1} << 32;
  const std::int64_t distance = (place.node - asking + kCircle) % kCircle;
  return distance + (place.tier == LowerTier::kSsd ? kCircle : 0);
}

}  // namespace

void GlobalIndex::add(kv::BlockHash hash, BlockPlace place, Time when) {
  tell(hash, place, when, true);
}

void GlobalIndex::remove(kv::BlockHash hash, BlockPlace place, Time when) {
  tell(hash, place, when, false);
}

void GlobalIndex::tell(kv::BlockHash hash, BlockPlace place, Time when, bool there) {
  ++updates_;
  pending_.push({when + staleness_, order_++, hash, place, there});
}

BlockPlace GlobalIndex::find(kv::BlockHash hash, std::int32_t asking, Time now) {
  for (; !pending_.empty() && pending_.top().known <= now; pending_.pop()) apply(pending_.top());
  ++lookups_;
  BlockPlace best;
  const std::int32_t head = table_.find(hash);
  if (head < 0) return best;
  for (std::int32_t at = heads_[head]; at >= 0; at = entries_[at].next) {
    const BlockPlace place = entries_[at].place;
    if (place.node == asking) continue;
    if (best.node < 0 || rank_of(place, asking) < rank_of(best, asking)) best = place;
  }
  return best;
}

void GlobalIndex::apply(const Change& change) {
  change.there ? insert(change.hash, change.place) : erase(change.hash, change.place);
}

std::int32_t GlobalIndex::take(std::vector<std::int32_t>& unused, std::size_t size) {
  if (unused.empty()) return static_cast<std::int32_t>(size);
  const std::int32_t at = unused.back();
  unused.pop_back();
  return at;
}

void GlobalIndex::insert(kv::BlockHash hash, BlockPlace place) {
  std::int32_t head = table_.find(hash);
  if (head < 0) {
    head = take(unused_heads_, heads_.size());
    if (head == static_cast<std::int32_t>(heads_.size())) heads_.emplace_back();
    heads_[head] = -1;
    table_.insert(hash, head);
  }
  const std::int32_t at = take(unused_entries_, entries_.size());
  if (at == static_cast<std::int32_t>(entries_.size())) entries_.emplace_back();
  entries_[at] = {place, heads_[head]};
  heads_[head] = at;
}

void GlobalIndex::erase(kv::BlockHash hash, BlockPlace place) {
  const std::int32_t head = table_.find(hash);
  if (head < 0) return;
  for (std::int32_t* link = &heads_[head]; *link >= 0; link = &entries_[*link].next) {
    if (!(entries_[*link].place == place)) continue;
    unused_entries_.push_back(*link);
    *link = entries_[*link].next;
    break;
  }
  if (heads_[head] >= 0) return;
  table_.erase(hash);
  unused_heads_.push_back(head);
}

}  // namespace moebius
