// Blocks of short contexts by hash and of long ones in a tree, as one cache: the hits of either structure.
#include "workloads/serving/kv/hybrid_index.h"

#include "tests/unit/kv/same_hits.h"
#include "workloads/serving/kv/kv_replay.h"

namespace moebius::kv {
namespace {

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
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    RandomStream random(seed);
    const std::int64_t capacity = random_capacity(random);
    HybridIndex hybrid(capacity, random.below(18));
    INFO("seed " << seed);
    require_same_hits<HybridLease>(random, capacity, 30, hybrid);
  }
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
