#include "workloads/serving/kv/prefix_trie.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::kv {

PrefixTrie::PrefixTrie(std::int64_t capacity) : capacity_(capacity) {
  CHECK(capacity >= 0 && capacity <= BlockIndex::kUnbounded, fmt::format("capacity={}", capacity));
}

PrefixTrie::Position PrefixTrie::walk(Chain chain) const {
  Position at;
  while (at.blocks < static_cast<std::int64_t>(chain.size())) {
    const std::int32_t next = first_.find(chain[at.blocks]);
    // A run in the middle of a chain that stands elsewhere does not follow it.
    if (next < 0 || edges_[next].parent != at.edge) return at;
    const std::vector<BlockHash>& run = edges_[next].blocks;
    const Chain rest = chain.subspan(at.blocks, std::min(run.size(), chain.size() - at.blocks));
    const auto same =
        static_cast<std::size_t>(std::mismatch(rest.begin(), rest.end(), run.begin()).first - rest.begin());
    at = {next, same, at.blocks + static_cast<std::int64_t>(same)};
    if (same < run.size()) return at;
  }
  return at;
}

std::int64_t PrefixTrie::match(Chain chain) const {
  return walk(chain).blocks;
}

// The edge that ends there. What is below the cut keeps the edge's number: leases end with it.
std::int32_t PrefixTrie::cut(const Position& at) {
  if (at.edge < 0 || at.within == edges_[at.edge].blocks.size()) return at.edge;
  std::int32_t above = static_cast<std::int32_t>(edges_.size());
  if (unused_.empty()) {
    edges_.emplace_back();
    links_.reach(above);
  } else {
    above = unused_.back();
    unused_.pop_back();
  }
  Edge &upper = edges_[above], &lower = edges_[at.edge];
  const auto middle = lower.blocks.begin() + static_cast<std::ptrdiff_t>(at.within);
  upper.blocks.assign(lower.blocks.begin(), middle);
  lower.blocks.erase(lower.blocks.begin(), middle);
  upper.parent = lower.parent;
  upper.leases = lower.leases;
  upper.used = lower.used;
  lower.parent = above;
  first_.erase(upper.blocks.front());
  first_.insert(upper.blocks.front(), above);
  first_.insert(lower.blocks.front(), at.edge);
  // The lower part goes first; both were used last when the whole was.
  if (upper.leases == 0) idle_.insert_after(links_, at.edge, above);
  return above;
}

void PrefixTrie::hold(std::int32_t edge) {
  if (edges_[edge].leases++ > 0) return;
  idle_.remove(links_, edge);
  in_use_ += static_cast<std::int64_t>(edges_[edge].blocks.size());
}

void PrefixTrie::free(std::int32_t edge) {
  if (--edges_[edge].leases > 0) return;
  edges_[edge].used = tick_;
  idle_.push(links_, edge);
  in_use_ -= static_cast<std::int64_t>(edges_[edge].blocks.size());
}

void PrefixTrie::acquire(Chain chain, TrieLease& lease) {
  const Position at = walk(chain);
  lease = {cut(at), at.blocks};
  for (std::int32_t edge = lease.edge; edge >= 0; edge = edges_[edge].parent) hold(edge);
}

// In use, once.
std::int32_t PrefixTrie::append(std::int32_t parent, Chain blocks) {
  std::int32_t edge = static_cast<std::int32_t>(edges_.size());
  if (unused_.empty()) {
    edges_.emplace_back();
    links_.reach(edge);
  } else {
    edge = unused_.back();
    unused_.pop_back();
  }
  edges_[edge].blocks.assign(blocks.begin(), blocks.end());
  edges_[edge].parent = parent;
  edges_[edge].leases = 1;
  first_.insert(blocks.front(), edge);
  resident_ += static_cast<std::int64_t>(blocks.size());
  in_use_ += static_cast<std::int64_t>(blocks.size());
  return edge;
}

void PrefixTrie::release(Chain chain, TrieLease& lease) {
  CHECK(lease.held <= static_cast<std::int64_t>(chain.size()),
        fmt::format("a lease of {} blocks for a chain of {}", lease.held, chain.size()));
  // What others brought in meanwhile is held too.
  const Position found = walk(chain);
  std::int32_t last = cut(found);
  for (std::int32_t edge = last; edge != lease.edge; edge = edges_[edge].parent) hold(edge);
  const auto missing = static_cast<std::int64_t>(chain.size()) - found.blocks;
  const std::int64_t admitted = std::min(missing, capacity_ - in_use_);
  if (admitted > 0) {
    evict(resident_ + admitted - capacity_);
    last = append(last, chain.subspan(found.blocks, admitted));
  }
  for (std::int32_t edge = last; edge >= 0; edge = edges_[edge].parent) free(edge);
  lease = {};
}

std::int64_t PrefixTrie::evict(std::int64_t blocks) {
  std::int64_t gone = 0;
  for (; gone < blocks && idle_.oldest >= 0; ++gone) drop_last(idle_.oldest);
  return gone;
}

// Of a leaf: whatever follows an edge was used no later than it.
void PrefixTrie::drop_last(std::int32_t edge) {
  Edge& leaf = edges_[edge];
  if (leaf.blocks.size() == 1) {
    first_.erase(leaf.blocks.front());
    idle_.remove(links_, edge);
    unused_.push_back(edge);
  }
  leaf.blocks.pop_back();
  --resident_;
  ++evicted_;
}

std::int64_t PrefixTrie::bytes() const {
  constexpr std::int64_t kCells = 24;  // of the table, for an edge: 16 bytes a cell, two in three in use
  const std::int64_t edge = static_cast<std::int64_t>(sizeof(Edge)) + 8 + kCells;
  return resident_ * 8 + edges() * edge;
}

}  // namespace moebius::kv
