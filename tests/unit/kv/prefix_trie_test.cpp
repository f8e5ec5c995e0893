// The tree of runs against the index by hash: the same hits, the same blocks that go.
#include "workloads/serving/kv/prefix_trie.h"

#include <deque>

#include "hw/error.h"
#include "workloads/routing/random_stream.h"
#undef CHECK  // ours; here it is Catch's
#include <catch2/catch.hpp>

namespace moebius::kv {
namespace {

// Chains of a tree whose branches are few near the root: each block is a hash of all before it.
std::vector<BlockHash> random_chain(RandomStream& random, std::uint32_t longest) {
  std::vector<BlockHash> chain;
  BlockHash at = 17;
  for (std::uint32_t i = 1 + random.below(longest); i > 0; --i) {
    at =
        RandomStream::finalise(at + random.below(1 + 3 / (1 + static_cast<std::uint32_t>(chain.size()) % 4)));
    chain.push_back(at);
  }
  return chain;
}

struct Open {
  std::vector<BlockHash> chain;
  Lease lease;
  TrieLease trie;
};

// Requests that overlap: up to `most` are under way; each ends before the next one begins when full.
void compare(std::uint64_t seed, int requests) {
  RandomStream random(seed);
  const std::int64_t capacity = random.below(4) == 0 ? random.below(6) : random.below(60);
  const std::size_t most = 1 + random.below(5);
  BlockIndex index(capacity);
  PrefixTrie trie(capacity);
  std::deque<Open> open;
  const auto finish = [&] {
    const std::size_t which = random.below(static_cast<std::uint32_t>(open.size()));
    Open done = std::move(open[which]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    index.release(done.chain, done.lease);
    trie.release(done.chain, done.trie);
    REQUIRE(index.resident() == trie.resident());
    REQUIRE(index.in_use() == trie.in_use());
    REQUIRE(trie.resident() <= capacity);
  };
  for (int i = 0; i < requests; ++i) {
    while (open.size() >= most) finish();
    Open next{random_chain(random, 16), {}, {}};
    index.acquire(next.chain, next.lease);
    trie.acquire(next.chain, next.trie);
    INFO("seed " << seed << ", request " << i << ", capacity " << capacity);
    REQUIRE(next.lease.blocks() == next.trie.blocks());
    open.push_back(std::move(next));
    if (random.below(7) == 0) REQUIRE(index.evict(2) == trie.evict(2));
  }
  while (!open.empty()) finish();
  REQUIRE(trie.in_use() == 0);
}

}  // namespace

TEST_CASE("a tree of runs hits what the index by hash hits in ten thousand random traces") {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) compare(seed, 30);
}

TEST_CASE("a long prompt that nobody shares is one edge") {
  PrefixTrie trie;
  std::vector<BlockHash> chain;
  for (BlockHash i = 0; i < 2000; ++i) chain.push_back(RandomStream::finalise(i));
  TrieLease lease;
  trie.acquire(chain, lease);
  trie.release(chain, lease);
  CHECK(trie.edges() == 1);
  CHECK(trie.match(chain) == 2000);
  // Another one that leaves it after 500 blocks makes three of one.
  chain.resize(500);
  for (BlockHash i = 0; i < 10; ++i) chain.push_back(RandomStream::finalise(1'000'000 + i));
  trie.acquire(chain, lease);
  CHECK(lease.blocks() == 500);
  trie.release(chain, lease);
  CHECK(trie.edges() == 3);
}

}  // namespace moebius::kv
