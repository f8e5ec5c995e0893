// Requests of random chains on the index by hash and on another one, side by side: the same hits, the same
// blocks that go.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "hw/error.h"
#include "workloads/routing/random_stream.h"
#include "workloads/serving/kv/block_index.h"
#include "tests/catch.h"

namespace moebius::kv {

// Chains of a tree whose branches are few near the root: each block is a hash of all before it.
inline std::vector<BlockHash> random_chain(RandomStream& random, std::uint32_t longest) {
  std::vector<BlockHash> chain;
  BlockHash at = 17;
  for (std::uint32_t i = 1 + random.below(longest); i > 0; --i) {
    const auto branches = 1 + 3 / (1 + static_cast<std::uint32_t>(chain.size()) % 4);
    at = RandomStream::finalise(at + random.below(branches));
    chain.push_back(at);
  }
  return chain;
}

// Of about 0 to 60 blocks, from so many random numbers.
inline std::int64_t random_capacity(RandomStream& random) {
  return random.below(4) == 0 ? random.below(6) : random.below(60);
}

// Requests that overlap: some are under way; each ends before the next one begins when that is full.
template <class OtherLease, class Other>
void require_same_hits(RandomStream& random, std::int64_t capacity, int requests, Other& other) {
  struct Open {
    std::vector<BlockHash> chain;
    Lease lease;
    OtherLease others;
  };
  const std::size_t most = 1 + random.below(5);
  BlockIndex index(capacity);
  std::deque<Open> open;
  const auto finish = [&] {
    const std::size_t which = random.below(static_cast<std::uint32_t>(open.size()));
    Open done = std::move(open[which]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    index.release(done.chain, done.lease);
    other.release(done.chain, done.others);
    REQUIRE(index.resident() == other.resident());
    REQUIRE(index.in_use() == other.in_use());
    REQUIRE(index.evicted() == other.evicted());
    REQUIRE(other.resident() <= capacity);
  };
  for (int i = 0; i < requests; ++i) {
    while (open.size() >= most) finish();
    Open next{random_chain(random, 16), {}, {}};
    index.acquire(next.chain, next.lease);
    other.acquire(next.chain, next.others);
    INFO("request " << i << ", capacity " << capacity);
    REQUIRE(next.lease.blocks() == next.others.blocks());
    open.push_back(std::move(next));
    if (random.below(7) == 0) REQUIRE(index.evict(2) == other.evict(2));
  }
  while (!open.empty()) finish();
  REQUIRE(other.in_use() == 0);
}

}  // namespace moebius::kv
