// What finding the blocks of a prompt takes by each structure of the index, printed.
#include <ctime>
#include <vector>

#include <catch2/catch.hpp>

#include "workloads/routing/random_stream.h"
#include "workloads/serving/kv/hybrid_index.h"

namespace moebius::kv {
namespace {

constexpr std::int64_t kHead = 32;  // 16,384 tokens in blocks of 512

// Prompts that share no block but those of one beginning.
std::vector<std::vector<BlockHash>> prompts_of(std::int64_t blocks, std::int64_t count) {
  std::vector<std::vector<BlockHash>> prompts(static_cast<std::size_t>(count));
  for (std::int64_t p = 0; p < count; ++p)
    for (std::int64_t i = 0; i < blocks; ++i)
      prompts[static_cast<std::size_t>(p)].push_back(
          RandomStream::finalise(static_cast<BlockHash>(i < 4 ? i : (p + 1) * 1'000'003 + i)));
  return prompts;
}

struct Cost {
  double nanoseconds = 0;  // a block that is found
  double bytes = 0;        // a block that is kept
};

template <class Lease, class Index>
Cost cost_of(Index index, const std::vector<std::vector<BlockHash>>& prompts) {
  std::int64_t found = 0;
  for (const auto& prompt : prompts) {
    Lease lease;
    index.acquire(prompt, lease);
    index.release(prompt, lease);
  }
  const std::clock_t start = std::clock();  // of this process: others may run beside it
  for (int round = 0; round < 5; ++round)
    for (const auto& prompt : prompts) found += index.match(prompt);
  const double taken = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return {taken * 1e9 / static_cast<double>(found),
          static_cast<double>(index.bytes()) / static_cast<double>(index.resident())};
}

}  // namespace

TEST_CASE("what a block costs by hash, in a tree of runs, and by both, in short and in long prompts") {
  for (const std::int64_t blocks : {8, 32, 256}) {
    const auto prompts = prompts_of(blocks, 200'000 / blocks);
    const Cost hash = cost_of<Lease>(BlockIndex(), prompts);
    const Cost trie = cost_of<TrieLease>(PrefixTrie(), prompts);
    const Cost both = cost_of<HybridLease>(HybridIndex(BlockIndex::kUnbounded, kHead), prompts);
    WARN(blocks << " blocks a prompt: hash " << hash.nanoseconds << " ns and " << hash.bytes
                << " bytes a block, trie " << trie.nanoseconds << " ns and " << trie.bytes << ", hybrid "
                << both.nanoseconds << " ns and " << both.bytes);
    CHECK(trie.bytes < hash.bytes);
    CHECK(both.bytes < hash.bytes);
  }
}

}  // namespace moebius::kv
