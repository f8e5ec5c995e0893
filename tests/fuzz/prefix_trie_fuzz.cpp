// Whatever is asked of them, in whatever order: the tree of runs and the index by hash have the same hits,
// hold as much and take out as much.
#include <deque>

#include <fmt/format.h>

#include "hw/error.h"
#include "tests/fuzz/target.h"
#include "workloads/routing/random_stream.h"
#include "workloads/serving/kv/prefix_trie.h"

namespace moebius::fuzz {
namespace {

// A chain of up to 15 blocks of a tree, whose branches the bytes choose: equal beginnings have equal hashes.
std::vector<kv::BlockHash> chain_of(const std::uint8_t* data, std::size_t size) {
  std::vector<kv::BlockHash> chain;
  kv::BlockHash at = 29;
  const std::size_t count = 1 + (size == 0 ? 0 : data[0] % 15);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t branch = 1 + i / 2 < size ? (data[1 + i / 2] >> (i % 2 * 4)) & 3 : 0;
    chain.push_back(at = RandomStream::finalise(at + branch));
  }
  return chain;
}

struct Open {
  std::vector<kv::BlockHash> chain;
  kv::Lease lease;
  kv::TrieLease trie;
};

}  // namespace

std::vector<std::string> seed_inputs() {
  std::vector<std::string> seeds;
  RandomStream random(1);
  for (int i = 0; i < 12; ++i) {
    std::string seed;
    for (int byte = 0; byte < 40 + 40 * i; ++byte) seed.push_back(static_cast<char>(random.bits()));
    seeds.push_back(seed);
  }
  return seeds;
}

}  // namespace moebius::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace moebius;
  if (size == 0) return 0;
  const std::int64_t capacity = data[0] % 48;
  kv::BlockIndex index(capacity);
  kv::PrefixTrie trie(capacity);
  std::deque<fuzz::Open> open;
  for (std::size_t at = 1; at < size;) {
    const std::uint8_t op = data[at++];
    if (op % 4 == 3) {
      CHECK(index.evict(op >> 4) == trie.evict(op >> 4), "not as many were there to be taken out");
    } else if (op % 4 == 2 && !open.empty()) {
      const std::size_t which = (op >> 2) % open.size();
      fuzz::Open done = std::move(open[which]);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
      index.release(done.chain, done.lease);
      trie.release(done.chain, done.trie);
    } else {
      fuzz::Open& next = open.emplace_back();
      next.chain = fuzz::chain_of(data + at, size - at);
      at += 1 + next.chain.size() / 2;
      CHECK(index.match(next.chain) == trie.match(next.chain), "different hits");
      index.acquire(next.chain, next.lease);
      trie.acquire(next.chain, next.trie);
      CHECK(next.lease.blocks() == next.trie.blocks(), "different leases");
    }
    CHECK(index.resident() == trie.resident() && index.in_use() == trie.in_use(),
          fmt::format("{} and {} blocks, {} and {} in use", index.resident(), trie.resident(), index.in_use(),
                      trie.in_use()));
  }
  return 0;
}
