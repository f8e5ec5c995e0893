#include "real/tiers/sealed_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::kv {
namespace {

constexpr std::uint64_t kMark = 0x6d6f65626c6f636bu;  // "moeblock"
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u, kOdd = 0xc2b2ae3d27d4eb4fu;

std::uint64_t mixed(std::uint64_t sum, std::uint64_t word) {
  return std::rotl(sum ^ (word * kGolden), 29) * kOdd;
}

std::uint64_t finalised(std::uint64_t sum) {
  sum = (sum ^ (sum >> 32)) * kGolden;
  sum = (sum ^ (sum >> 29)) * kOdd;
  return sum ^ (sum >> 32);
}

std::uint64_t word_at(const std::byte* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

std::uint64_t sum_of(const BlockSeal& seal) {
  std::uint64_t sum = mixed(mixed(mixed(mixed(kOdd, seal.mark), seal.hash), seal.bytes), seal.payload_sum);
  return finalised(sum);
}

}  // namespace

// Four sums side by side, so that their multiplications overlap.
std::uint64_t checksum(const std::byte* bytes, std::int64_t count) {
  std::array<std::uint64_t, 4> sums = {kGolden, kOdd, ~kGolden, ~kOdd};
  std::int64_t at = 0;
  for (; at + 32 <= count; at += 32)
    for (std::size_t lane = 0; lane < 4; ++lane)
      sums[lane] = mixed(sums[lane], word_at(bytes + at + 8 * lane));
  std::array<std::byte, 32> rest{};
  std::memcpy(rest.data(), bytes + at, static_cast<std::size_t>(count - at));
  for (std::size_t lane = 0; lane < 4; ++lane)
    sums[lane] = mixed(sums[lane], word_at(rest.data() + 8 * lane));
  std::uint64_t sum = static_cast<std::uint64_t>(count);
  for (const std::uint64_t lane : sums) sum = mixed(sum, lane);
  return finalised(sum);
}

void seal_block(std::byte* memory, std::int64_t payload, BlockHash hash) {
  BlockSeal seal{kMark, hash, static_cast<std::uint64_t>(payload), checksum(memory, payload), 0};
  seal.seal_sum = sum_of(seal);
  std::memcpy(memory + payload, &seal, sizeof(seal));
  const std::int64_t end = payload + static_cast<std::int64_t>(sizeof(seal));
  std::memset(memory + end, 0, static_cast<std::size_t>(sealed_bytes(payload) - end));
}

std::optional<BlockHash> sealed_hash(const std::byte* memory, std::int64_t payload) {
  BlockSeal seal;
  std::memcpy(&seal, memory + payload, sizeof(seal));
  const bool ours = seal.mark == kMark && seal.bytes == static_cast<std::uint64_t>(payload);
  if (!ours || seal.seal_sum != sum_of(seal)) return std::nullopt;
  if (seal.payload_sum != checksum(memory, payload)) return std::nullopt;
  return seal.hash;
}

std::vector<std::optional<BlockHash>> read_back(Tier& tier, std::int64_t payload) {
  const std::int64_t bytes = sealed_bytes(payload), blocks = tier.shape().blocks;
  CHECK(tier.shape().block_bytes == bytes, fmt::format("blocks of {}", tier.shape().block_bytes));
  const std::int64_t at_once = std::min<std::int64_t>(blocks, tier.shape().depth);
  AlignedMemory memory(bytes * at_once);
  std::vector<std::optional<BlockHash>> found;
  for (std::int64_t first = 0; first < blocks; first += at_once) {
    const std::int64_t count = std::min(at_once, blocks - first);
    for (std::int64_t i = 0; i < count; ++i)
      tier.submit({Direction::kRead, {{first + i, 0, bytes, memory.data() + i * bytes}}});
    // All of them, also after a failure: they read into `memory`.
    std::string failure;
    for (std::int64_t done = 0; done < count;)
      for (const TransferDone& each : tier.wait(kForever)) {
        if (each.outcome == Outcome::kFailed && failure.empty()) failure = each.failure;
        ++done;
      }
    if (!failure.empty()) throw run_error(failure);
    for (std::int64_t i = 0; i < count; ++i) found.push_back(sealed_hash(memory.data() + i * bytes, payload));
  }
  return found;
}

}  // namespace moebius::kv
