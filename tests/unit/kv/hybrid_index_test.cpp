// Blocks of short contexts by hash and of long ones in a tree, as one cache: the hits of either structure.
#include "workloads/serving/kv/hybrid_index.h"

#include <deque>

#include "hw/error.h"
#include "workloads/routing/random_stream.h"
#include "workloads/serving/kv/kv_replay.h"
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
  HybridLease hybrid;
};

// Requests that overlap: up to `most` are under way; each ends before the next one begins when full.
void compare(std::uint64_t seed, int requests) {
  RandomStream random(seed);
  const std::int64_t capacity = random.below(4) == 0 ? random.below(6) : random.below(60);
  const std::size_t most = 1 + random.below(5);
  BlockIndex index(capacity);
  HybridIndex hybrid(capacity, random.below(18));
  std::deque<Open> open;
  const auto finish = [&] {
    const std::size_t which = random.below(static_cast<std::uint32_t>(open.size()));
    Open done = std::move(open[which]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    index.release(done.chain, done.lease);
    hybrid.release(done.chain, done.hybrid);
    REQUIRE(index.resident() == hybrid.resident());
    REQUIRE(index.in_use() == hybrid.in_use());
    REQUIRE(index.evicted() == hybrid.evicted());
    REQUIRE(hybrid.resident() <= capacity);
  };
  for (int i = 0; i < requests; ++i) {
    while (open.size() >= most) finish();
    Open next{random_chain(random, 16), {}, {}};
    index.acquire(next.chain, next.lease);
    hybrid.acquire(next.chain, next.hybrid);
    INFO("seed " << seed << ", request " << i << ", capacity " << capacity);
    REQUIRE(next.lease.blocks() == next.hybrid.blocks());
    open.push_back(std::move(next));
    if (random.below(7) == 0) REQUIRE(index.evict(2) == hybrid.evict(2));
  }
  while (!open.empty()) finish();
  REQUIRE(hybrid.in_use() == 0);
}

// Eighty conversations that take turns, in blocks of 16 tokens.
class Turns : public TrafficStream {
 public:
  bool next(TrafficRequest& request) override {
    if (left_-- == 0) return false;
    request = {};
    request.arrival = now_ += Time{1'000'000};
    const std::size_t which = random_.below(80);
    said_[which] = said_[which] > 90 ? 2 : said_[which] + 1 + random_.below(6);
    request.block_tokens = 16;
    request.input_tokens = 16 * said_[which];
    for (std::int64_t i = 0; i < said_[which]; ++i)
      request.blocks.push_back(
          static_cast<BlockHash>(i < 3 ? i : 1000 * static_cast<std::int64_t>(which + 1) + i));
    return true;
  }

 private:
  int left_ = 4000;
  RandomStream random_{5};
  Time now_;
  std::vector<std::int64_t> said_ = std::vector<std::int64_t>(80, 2);
};

}  // namespace

TEST_CASE("a replay hits the same by every structure of its index") {
  const auto replayed = [](IndexStructure structure, std::int64_t long_from) {
    Turns traffic;
    ReplayCache cache;
    cache.capacity_blocks = 1500;
    cache.service_time = Time{7'000'000};  // seven requests are under way
    cache.structure = structure;
    cache.long_from = long_from;
    return replay(traffic, cache);
  };
  const ReplayFigures hash = replayed(IndexStructure::kHash, 0);
  CHECK(hash.hit_blocks > 10'000);
  CHECK(hash.evicted_blocks > 1000);
  for (const auto& other :
       {replayed(IndexStructure::kTrie, 0), replayed(IndexStructure::kHybrid, 0),
        replayed(IndexStructure::kHybrid, 250), replayed(IndexStructure::kHybrid, 10'000)}) {
    CHECK(other.hit_blocks == hash.hit_blocks);
    CHECK(other.evicted_blocks == hash.evicted_blocks);
    CHECK(other.resident_blocks == hash.resident_blocks);
    CHECK(other.index_bytes < hash.index_bytes);
  }
}

TEST_CASE(
    "leading blocks by hash and the rest in a tree hit what all by hash hit in ten thousand random traces") {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) compare(seed, 30);
}

TEST_CASE("what long prompts have behind their leading blocks takes a tenth of the memory") {
  // A head of 8 blocks and a tail of 2,000 that nobody shares: 8 cells and one edge of 2,000 hashes.
  BlockIndex index;
  HybridIndex hybrid(BlockIndex::kUnbounded, 8);
  for (BlockHash prompt = 0; prompt < 10; ++prompt) {
    std::vector<BlockHash> chain;
    for (BlockHash i = 0; i < 2008; ++i) chain.push_back(RandomStream::finalise(prompt * 10'000 + i));
    Lease lease;
    index.acquire(chain, lease);
    index.release(chain, lease);
    HybridLease both;
    hybrid.acquire(chain, both);
    hybrid.release(chain, both);
    CHECK(hybrid.match(chain) == 2008);
  }
  CHECK(hybrid.resident() == index.resident());
  CHECK(static_cast<double>(hybrid.bytes()) < 0.15 * static_cast<double>(index.bytes()));
}

}  // namespace moebius::kv
