// The tree of runs against the index by hash: the same hits, the same blocks that go.
#include "workloads/serving/kv/prefix_trie.h"

#include "tests/unit/kv/same_hits.h"
#include "workloads/serving/kv/kv_replay.h"

namespace moebius::kv {
TEST_CASE("a tree of runs hits what the index by hash hits in ten thousand random traces") {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    RandomStream random(seed);
    const std::int64_t capacity = random_capacity(random);
    PrefixTrie trie(capacity);
    INFO("seed " << seed);
    require_same_hits<TrieLease>(random, capacity, 30, trie);
  }
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

TEST_CASE("a tree refuses blocks that stand behind others than before") {
  struct Rows : TrafficStream {
    std::vector<std::vector<std::uint64_t>> rows{{6, 5}, {5}};
    std::size_t at = 0;
    bool next(TrafficRequest& request) override {
      if (at == rows.size()) return false;
      request = {};
      request.blocks = rows[at++];
      request.block_tokens = 512;
      request.input_tokens = 512 * static_cast<std::int64_t>(request.blocks.size());
      return true;
    }
  };
  for (const auto structure : {kv::IndexStructure::kTrie, kv::IndexStructure::kHybrid}) {
    Rows rows;
    kv::ReplayCache cache;
    cache.structure = structure;
    CHECK_THROWS_AS(kv::replay(rows, cache), Error);
  }
  Rows rows;
  CHECK(kv::replay(rows, kv::ReplayCache()).hit_blocks == 1);
}

}  // namespace moebius::kv
