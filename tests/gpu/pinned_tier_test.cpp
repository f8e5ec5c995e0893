// Pinned memory as a tier below the device's, and an SSD below that.
#include <cstring>
#include <filesystem>

#include "real/cuda/pinned_tier.h"
#include "real/tiers/ssd_tier.h"
#include "tests/gpu/device_tests.h"
#include "tests/unit/real/tier_bytes.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius::cuda {
namespace {

using kv::Direction;
using kv::Pages;

constexpr std::int64_t kBlock = 73728, kBlocks = 12;  // 64 tokens of 576 BF16 numbers

// Memory of the device for all blocks, with a stream to fill and to look at it.
class OnDevice {
 public:
  OnDevice() : bytes_(static_cast<std::byte*>(allocate(kBlock * kBlocks))), stream_(make_stream()) {}
  ~OnDevice() {
    destroy(stream_);
    release(bytes_);
  }
  std::byte* block(std::int64_t i) const { return bytes_ + i * kBlock; }
  void set(const Pages& from) {
    copy_to_device(stream_, bytes_, from.at(0), kBlock * kBlocks);
    synchronise(stream_);
  }
  void get(const Pages& to) {
    copy_to_host(stream_, to.at(0), bytes_, kBlock * kBlocks);
    synchronise(stream_);
  }

 private:
  std::byte* bytes_;
  Stream stream_;
};

TEST_CASE("blocks go from the device to pinned memory and come back to other places in it") {
  NEEDS_DEVICE();
  PinnedTier tier({kBlock, kBlocks, 4, 1}, kv::HostClock::now());
  OnDevice device;
  Pages written(kBlock * kBlocks), found(kBlock * kBlocks);
  written.fill_randomly(11);
  device.set(written);
  for (std::int64_t i = 0; i < kBlocks; ++i)
    tier.submit({Direction::kWrite, {{i, 0, kBlock, device.block(i)}}});
  REQUIRE(kv::all_good(tier, kBlocks));
  // The second half of each block first, as layers do that are needed in turn.
  for (const std::int64_t half : {1, 0}) {
    for (std::int64_t i = 0; i < kBlocks; ++i) {
      std::byte* const to = device.block(kBlocks - 1 - i) + half * kBlock / 2;
      tier.submit({Direction::kRead, {{i, half * kBlock / 2, kBlock / 2, to}}});
    }
  }
  REQUIRE(kv::all_good(tier, 2 * kBlocks));
  device.get(found);
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    INFO("block " << i);
    CHECK(std::memcmp(found.at((kBlocks - 1 - i) * kBlock), written.at(i * kBlock), kBlock) == 0);
  }
}

TEST_CASE("a block goes down to the SSD through pinned memory and all the way up again") {
  NEEDS_DEVICE();
  const auto zero = kv::HostClock::now();
  PinnedTier pinned({kBlock, 2, 2, 1}, zero);
  kv::SsdTier ssd({.directory = std::filesystem::temp_directory_path().string(),
                   .block_bytes = kBlock,
                   .blocks = kBlocks,
                   .depth = 8},
                  zero);
  OnDevice device;
  Pages written(kBlock * kBlocks), found(kBlock * kBlocks);
  written.fill_randomly(13);
  device.set(written);
  const auto move = [](kv::Tier& tier, Direction direction, std::int64_t block, std::byte* memory) {
    tier.submit({direction, {{block, 0, kBlock, memory}}});
    return kv::all_good(tier, 1);
  };
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    REQUIRE(move(pinned, Direction::kWrite, 0, device.block(i)));
    REQUIRE(move(ssd, Direction::kWrite, i, pinned.memory(0)));
  }
  device.set(found);  // zeros
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    REQUIRE(move(ssd, Direction::kRead, i, pinned.memory(1)));
    REQUIRE(move(pinned, Direction::kRead, 1, device.block(i)));
  }
  device.get(found);
  CHECK(found.equals(written));
}

}  // namespace
}  // namespace moebius::cuda
