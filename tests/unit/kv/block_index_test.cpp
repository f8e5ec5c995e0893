// The index of blocks against the plainest one that does the same, and the laws of a cache.
#include "workloads/serving/kv/block_index.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>

#include "hw/error.h"
#include "tests/catch.h"
#include "workloads/routing/random_stream.h"
#include "workloads/serving/kv/kv_replay.h"
#include "workloads/serving/traffic/trace_file.h"

namespace moebius::kv {
namespace {

using namespace literals;

// By definition: leading blocks that are there are counted, then all are touched from the last to the first,
// then the ones not touched for longest go.
class PlainCache {
 public:
  explicit PlainCache(std::size_t capacity) : capacity_(capacity) {}

  std::int64_t take(Chain chain) {
    std::int64_t hits = 0;
    for (const BlockHash hash : chain) {
      if (std::find(recent_.begin(), recent_.end(), hash) == recent_.end()) break;
      ++hits;
    }
    for (auto hash = chain.rbegin(); hash != chain.rend(); ++hash) {
      std::erase(recent_, *hash);
      recent_.push_front(*hash);
    }
    recent_.resize(std::min(recent_.size(), capacity_));
    return hits;
  }
  bool holds(BlockHash hash) const {
    return std::find(recent_.begin(), recent_.end(), hash) != recent_.end();
  }

 private:
  std::size_t capacity_;
  std::deque<BlockHash> recent_;
};

// Chains of a tree whose branches are few near the root.
std::vector<BlockHash> shallow_chain(RandomStream& random, std::uint32_t longest) {
  std::vector<BlockHash> chain;
  BlockHash at = 17;
  for (std::uint32_t i = 1 + random.below(longest); i > 0; --i) {
    at = RandomStream::finalise(at + random.below(3));
    chain.push_back(at);
  }
  return chain;
}

std::int64_t take(BlockIndex& index, Chain chain) {
  Lease lease;
  index.acquire(chain, lease);
  const std::int64_t hits = lease.blocks();
  index.release(chain, lease);
  return hits;
}

class Given : public TrafficStream {
 public:
  explicit Given(std::vector<TrafficRequest> requests) : requests_(std::move(requests)) {}
  bool next(TrafficRequest& request) override {
    if (at_ == requests_.size()) return false;
    request = requests_[at_++];
    return true;
  }

 private:
  std::vector<TrafficRequest> requests_;
  std::size_t at_ = 0;
};

TrafficRequest request(Time arrival, std::vector<std::uint64_t> blocks) {
  TrafficRequest made;
  made.arrival = arrival;
  made.input_tokens = 512 * static_cast<std::int64_t>(blocks.size());
  made.output_tokens = 1;
  made.blocks = std::move(blocks);
  made.block_tokens = 512;
  return made;
}

}  // namespace

TEST_CASE("an index of any capacity hits what the plainest cache hits") {
  for (const std::int64_t capacity : {0, 1, 2, 7, 40, 300}) {
    RandomStream random(static_cast<std::uint64_t>(capacity) + 3);
    BlockIndex index(capacity);
    PlainCache plain(static_cast<std::size_t>(capacity));
    for (int i = 0; i < 1500; ++i) {
      const std::vector<BlockHash> chain = shallow_chain(random, 12);
      INFO("capacity " << capacity << ", chain " << i);
      REQUIRE(take(index, chain) == plain.take(chain));
      REQUIRE(index.resident() <= capacity);
      for (const BlockHash hash : chain) REQUIRE((index.slot_of(hash) >= 0) == plain.holds(hash));
    }
    CHECK(index.in_use() == 0);
  }
}

TEST_CASE("blocks in use stay and slots are of different blocks") {
  // Up to eight requests are under way at a time; each holds what it hit until it ends.
  RandomStream random(5);
  constexpr std::int64_t kCapacity = 30;
  BlockIndex index(kCapacity);
  struct Open {
    std::vector<BlockHash> chain;
    Lease lease;
  };
  std::deque<Open> open;
  for (int i = 0; i < 20000; ++i) {
    if (open.size() == 8 || (!open.empty() && random.below(2) == 0)) {
      const std::size_t ended = random.below(static_cast<std::uint32_t>(open.size()));
      index.release(open[ended].chain, open[ended].lease);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(ended));
    } else {
      Open& begun = open.emplace_back();
      begun.chain = shallow_chain(random, 10);
      index.acquire(begun.chain, begun.lease);
      REQUIRE(begun.lease.blocks() == index.match(begun.chain));
    }
    std::map<std::int32_t, BlockHash> held;
    for (const Open& one : open) {
      for (std::size_t k = 0; k < one.lease.slots.size(); ++k) {
        const auto [at, fresh] = held.emplace(one.lease.slots[k], one.chain[k]);
        REQUIRE(at->second == one.chain[k]);
        REQUIRE(index.slot_of(one.chain[k]) == one.lease.slots[k]);
      }
    }
    REQUIRE(index.in_use() == static_cast<std::int64_t>(held.size()));
    REQUIRE(index.resident() <= kCapacity);
  }
}

TEST_CASE("what is there of a chain is found without using it, and what of that nobody uses") {
  BlockIndex index(8);
  const std::array<BlockHash, 3> chain{1, 2, 3};
  Lease first, second;
  index.release(Chain(chain).first(2), first);
  CHECK(index.find(chain).blocks == 2);
  CHECK(index.find(chain).idle == 2);
  index.acquire(Chain(chain).first(1), second);
  CHECK(index.find(chain).blocks == 2);
  CHECK(index.find(chain).idle == 1);
  CHECK(index.uses_of(index.slot_of(2)) == 1);
}

TEST_CASE("a chain longer than the cache keeps its beginning") {
  BlockIndex index(3);
  const std::vector<BlockHash> chain{10, 11, 12, 13, 14};
  CHECK(take(index, chain) == 0);
  CHECK(index.match(chain) == 3);
  CHECK(index.evicted() == 0);
}

TEST_CASE("a block that stands twice in a chain is there once") {
  BlockIndex index(4);
  const std::vector<BlockHash> chain{1, 1, 2};
  CHECK(take(index, chain) == 0);
  CHECK(index.resident() == 2);
  CHECK(take(index, chain) == 3);
}

TEST_CASE("a request that goes on behind its prompt uses its blocks once") {
  BlockIndex index(4);
  const std::vector<BlockHash> chain{1, 2};
  Lease lease;
  index.acquire(chain, lease);
  index.extend(chain, lease);
  CHECK(lease.blocks() == 2);
  CHECK(index.in_use() == 2);
  index.release(chain, lease);
  CHECK(index.uses_of(index.slot_of(1)) == 1);
  CHECK(take(index, chain) == 2);
  CHECK(index.uses_of(index.slot_of(1)) == 2);
}

TEST_CASE("what is taken out is not evicted") {
  BlockIndex index(4);
  index.keep_evicted();
  const std::vector<BlockHash> chain{1, 2, 3};
  take(index, chain);
  index.take_out(index.slot_of(3));
  CHECK(index.resident() == 2);
  CHECK(index.evicted() == 0);
  CHECK(index.evicted_blocks().empty());
  CHECK(index.evict(1) == 1);
  CHECK(index.evicted() == 1);
  CHECK(index.evicted_blocks().size() == 1);
}

TEST_CASE("a table finds what was put in and not what was taken out") {
  RandomStream random(11);
  BlockTable table;
  std::map<BlockHash, std::int32_t> plain;
  for (int i = 0; i < 200000; ++i) {
    // Few hashes, many of them neighbours: probes run into each other.
    const BlockHash hash = random.below(3000) * (random.below(2) == 0 ? 1 : std::uint64_t{1} << 40);
    if (random.below(2) == 0) {
      REQUIRE(table.insert(hash, i) == plain.emplace(hash, i).second);
    } else if (plain.erase(hash) == 1) {
      table.erase(hash);
    }
    const auto found = plain.find(hash);
    REQUIRE(table.find(hash) == (found == plain.end() ? -1 : found->second));
  }
  CHECK(table.size() == static_cast<std::int64_t>(plain.size()));
}

TEST_CASE("blocks of a request under way are not there for those that come meanwhile") {
  // Served in 10 s: the second of three equal requests comes too early, the third does not.
  const std::vector<TrafficRequest> requests{request(0_s, {1, 2}), request(9_s, {1, 2}),
                                             request(10_s, {1, 2})};
  Given late(requests), at_once(requests);
  const ReplayFigures figures = replay(late, {std::nullopt, EvictionKind::kLru, 10_s});
  CHECK(figures.hit_blocks == 2);
  CHECK(figures.requests_fully_hit == 1);
  CHECK(replay(at_once, {}).hit_blocks == 4);
}

TEST_CASE("hits and misses are all that was asked") {
  Given traffic({request(0_s, {1, 2, 3}), request(0_s, {1, 2, 4}), request(1_s, {5})});
  const ReplayFigures figures = replay(traffic, {.capacity_blocks = 2, .service_time = {}});
  CHECK(figures.requests == 3);
  CHECK(figures.total_blocks == 7);
  CHECK(figures.hit_blocks == 2);
  CHECK(figures.distinct_blocks == 5);
  CHECK(figures.resident_blocks == 2);
}

TEST_CASE("requests without blocks cannot be replayed against a cache") {
  Given traffic({request(0_s, {1}), request(0_s, {})});
  CHECK_THROWS_WITH(replay(traffic, {}),
                    "request 2 of the trace has no hash_ids: nothing is known of what inputs share");
}

// The counts of the published trace: leading blocks that are there, requests in the order of the file, each
// served at once (kvcache-ai/Mooncake, conversation_trace.jsonl).
TEST_CASE("the conversation trace has the hits that it is known to have") {
  const std::string path = MOEBIUS_SOURCE_DIR "/../shared/traces/conversation_trace.jsonl.gz";
  if (!std::filesystem::exists(path)) {
    WARN("skipped: the trace is not beside the project (../shared/traces)");
    return;
  }
  const auto hits = [&](std::optional<std::int64_t> capacity) {
    return replay(*open_trace({path}), {capacity, EvictionKind::kLru, Time{}});
  };
  const ReplayFigures endless = hits(std::nullopt);
  CHECK(endless.hit_blocks == 105710);
  CHECK(endless.total_blocks == 288500);
  CHECK(endless.distinct_blocks == 182790);
  CHECK(endless.requests == 12031);
  CHECK(endless.requests_fully_hit == 118);
  CHECK(endless.input_tokens == 144793823);
  CHECK(endless.output_tokens == 4122048);
  CHECK(endless.last_arrival == Time{3536999} * 1'000'000);
  CHECK(hits(1000).hit_blocks == 12847);
  CHECK(hits(10000).hit_blocks == 61046);
  CHECK(hits(30000).hit_blocks == 93978);
  CHECK(hits(50000).hit_blocks == 102290);
  CHECK(hits(100000).hit_blocks == 104924);
}

}  // namespace moebius::kv
