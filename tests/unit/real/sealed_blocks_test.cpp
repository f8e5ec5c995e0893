// Blocks in a file that stays: killed at any moment, a process leaves whole blocks or none.
#include "real/tiers/sealed_blocks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "real/tiers/ssd_tier.h"
#include "tests/process.h"
#include "workloads/routing/random_stream.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius::kv {
namespace {

constexpr std::int64_t kPayload = 200'000, kBlocks = 24;
constexpr std::int64_t kBytes = sealed_bytes(kPayload);

SsdOptions kept(const test::Scratch& scratch) {
  return {.directory = scratch.path(""),
          .block_bytes = kBytes,
          .blocks = kBlocks,
          .depth = 4,
          .name = "blocks.kv"};
}

// What a block with this hash holds.
void fill(std::byte* memory, BlockHash hash) {
  RandomStream random(hash);
  for (std::int64_t i = 0; i < kPayload; i += 8) {
    const std::uint64_t word = random.bits();
    std::memcpy(memory + i, &word, static_cast<std::size_t>(std::min<std::int64_t>(8, kPayload - i)));
  }
}

bool holds(const std::byte* memory, BlockHash hash) {
  AlignedMemory expected(kBytes);
  fill(expected.data(), hash);
  return std::memcmp(memory, expected.data(), static_cast<std::size_t>(kPayload)) == 0;
}

void write_all(Tier& tier, std::int64_t count) {
  while (count > 0)
    for (const TransferDone& done : tier.wait(kForever)) {
      INFO(done.failure);
      REQUIRE(done.outcome == Outcome::kGood);
      --count;
    }
}

// Overwrites blocks at random until it is killed. No Catch here: this is another process.
[[noreturn]] void write_for_ever(const SsdOptions& options, std::uint64_t seed, int started) {
  SsdTier tier(options, HostClock::now());
  AlignedMemory memory(4 * kBytes);
  RandomStream random(seed);
  for (bool first = true;; first = false) {
    const std::int64_t from = random.below(kBlocks - 4);
    for (std::int64_t i = 0; i < 4; ++i) {
      std::byte* const block = memory.data() + i * kBytes;
      const BlockHash hash = random.bits();
      fill(block, hash);
      seal_block(block, kPayload, hash);
      tier.submit({Direction::kWrite, {{from + i, 0, kBytes, block}}});
    }
    if (first && ::write(started, "s", 1) != 1) _exit(1);
    for (std::int64_t done = 0; done < 4;) done += static_cast<std::int64_t>(tier.wait(kForever).size());
  }
}

void write_and_be_killed(const SsdOptions& options, std::uint64_t seed) {
  int started[2];
  REQUIRE(pipe(started) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) write_for_ever(options, seed, started[1]);
  char byte = 0;
  const ssize_t came = ::read(started[0], &byte, 1);
  usleep(RandomStream(seed).below(4000));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(started[0]);
  close(started[1]);
  REQUIRE(came == 1);
}

// Every block is rejected, or is what its seal says; returns how many are.
std::int64_t check_all(Tier& tier) {
  std::int64_t whole = 0;
  AlignedMemory memory(kBytes);
  for (std::int64_t block = 0; block < kBlocks; ++block) {
    tier.submit({Direction::kRead, {{block, 0, kBytes, memory.data()}}});
    write_all(tier, 1);
    const std::optional<BlockHash> hash = sealed_hash(memory.data(), kPayload);
    if (!hash) continue;
    REQUIRE(holds(memory.data(), *hash));
    ++whole;
  }
  return whole;
}

int kills() {
  const char* const asked = std::getenv("MOEBIUS_KILLS");
  return asked != nullptr ? std::atoi(asked) : 25;
}

}  // namespace

TEST_CASE("a process that is killed while it writes leaves whole blocks or none") {
  // MOEBIUS_KILLS=1000 for more.
  const test::Scratch scratch;
  std::int64_t whole = 0;
  for (int i = 0; i < kills(); ++i) {
    write_and_be_killed(kept(scratch), static_cast<std::uint64_t>(i) + 1);
    SsdTier tier(kept(scratch), HostClock::now());
    const std::vector<std::optional<BlockHash>> found = read_back(tier, kPayload);
    const std::int64_t here = check_all(tier);
    REQUIRE(here ==
            std::count_if(found.begin(), found.end(), [](const auto& hash) { return hash.has_value(); }));
    whole += here;
  }
  CHECK(whole > 0);
}

TEST_CASE("a block of which a part is another one's is rejected, wherever the border is") {
  const test::Scratch scratch;
  AlignedMemory one(kBytes), other(kBytes);
  fill(one.data(), 1);
  fill(other.data(), 2);
  seal_block(one.data(), kPayload, 1);
  seal_block(other.data(), kPayload, 2);
  SsdTier tier(kept(scratch), HostClock::now());
  for (std::int64_t torn = 0; torn <= kBytes; torn += kPage) {
    tier.submit({Direction::kWrite, {{3, 0, kBytes, one.data()}}});
    write_all(tier, 1);
    if (torn > 0) {
      tier.submit({Direction::kWrite, {{3, 0, torn, other.data()}}});
      write_all(tier, 1);
    }
    const std::optional<BlockHash> found = read_back(tier, kPayload)[3];
    const std::optional<BlockHash> expected =
        torn == 0 ? std::optional<BlockHash>(1)
                  : (torn == kBytes ? std::optional<BlockHash>(2) : std::nullopt);
    INFO(torn << " bytes of the other");
    REQUIRE(found == expected);
  }
}

TEST_CASE("a bit that has turned is a block that is rejected") {
  AlignedMemory memory(kBytes);
  fill(memory.data(), 9);
  seal_block(memory.data(), kPayload, 9);
  RandomStream random(4);
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t at = random.below(static_cast<std::uint32_t>(kPayload + sizeof(BlockSeal)));
    const auto bit = static_cast<std::byte>(1 << random.below(8));
    memory.data()[at] ^= bit;
    REQUIRE(!sealed_hash(memory.data(), kPayload));
    memory.data()[at] ^= bit;
  }
  CHECK(sealed_hash(memory.data(), kPayload) == 9);
}

TEST_CASE("a write that the system refuses leaves the block as it was") {
  const test::Scratch scratch;
  AlignedMemory memory(kBytes);
  fill(memory.data(), 5);
  seal_block(memory.data(), kPayload, 5);
  SsdTier tier(kept(scratch), HostClock::now());
  tier.submit({Direction::kWrite, {{20, 0, kBytes, memory.data()}}});
  write_all(tier, 1);
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{static_cast<rlim_t>(kBytes) * 2, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  fill(memory.data(), 6);
  seal_block(memory.data(), kPayload, 6);
  tier.submit({Direction::kWrite, {{20, 0, kBytes, memory.data()}}});
  const std::vector<TransferDone> done = tier.wait(kForever);
  setrlimit(RLIMIT_FSIZE, &before);
  REQUIRE(done.size() == 1);
  CHECK(done[0].outcome == Outcome::kFailed);
  CHECK(done[0].failure ==
        "the SSD tier in " + scratch.path("") + ": block 20 could not be written: File too large");
  CHECK(read_back(tier, kPayload)[20] == 5);
}

TEST_CASE("a file that stays is one process's at a time") {
  const test::Scratch scratch;
  const SsdTier tier(kept(scratch), HostClock::now());
  CHECK_THROWS_WITH(SsdTier(kept(scratch), HostClock::now()),
                    "the SSD tier in " + scratch.path("") +
                        ": \"blocks.kv\" is another process's: Resource temporarily unavailable");
}

TEST_CASE("sealed blocks are written and read at the speed of a plain loop, which is told") {
  // No verdict on a machine that does other things too: figures alone.
  const test::Scratch scratch;
  constexpr std::int64_t kLarge = (4 << 20) - 4096, kCount = 32, kWhole = sealed_bytes(kLarge);
  const auto seconds = [](HostClock::time_point since) {
    return std::chrono::duration<double>(HostClock::now() - since).count();
  };
  AlignedMemory memory(kWhole * kCount);
  SsdTier tier(
      {.directory = scratch.path(""), .block_bytes = kWhole, .blocks = kCount, .depth = 8, .name = "b"},
      HostClock::now());
  // Sealed before it goes, looked at as soon as it is there: both beside the blocks that are under way.
  const auto all = [&](Direction direction) {
    const HostClock::time_point start = HostClock::now();
    for (std::int64_t i = 0; i < kCount; ++i) {
      std::byte* const block = memory.data() + i * kWhole;
      if (direction == Direction::kWrite) seal_block(block, kLarge, static_cast<BlockHash>(i));
      tier.submit({direction, {{i, 0, kWhole, block}}});
    }
    for (std::int64_t done = 0; done < kCount;)
      for (const TransferDone& each : tier.wait(kForever)) {
        REQUIRE(each.outcome == Outcome::kGood);
        const std::int64_t i = each.id % kCount;
        if (direction == Direction::kRead)
          REQUIRE(sealed_hash(memory.data() + i * kWhole, kLarge) == static_cast<BlockHash>(i));
        ++done;
      }
    return seconds(start);
  };
  const int file =
      open(scratch.path("plain").c_str(), O_RDWR | O_CREAT | (tier.direct() ? O_DIRECT : 0), 0600);
  REQUIRE(file >= 0);
  REQUIRE(posix_fallocate(file, 0, kWhole * kCount) == 0);
  const auto plain = [&](bool writes) {
    const HostClock::time_point start = HostClock::now();
    for (std::int64_t i = 0; i < kCount; ++i) {
      const ssize_t moved = writes ? pwrite(file, memory.data() + i * kWhole, kWhole, i * kWhole)
                                   : pread(file, memory.data() + i * kWhole, kWhole, i * kWhole);
      REQUIRE(moved == kWhole);
    }
    return seconds(start);
  };
  all(Direction::kWrite);
  plain(true);
  // In turns, so that what else the machine does falls on both alike.
  constexpr int kTimes = 8;
  std::vector<double> taken[4];
  for (int i = 0; i < kTimes; ++i) {
    taken[0].push_back(all(Direction::kWrite));
    taken[1].push_back(plain(true));
    taken[2].push_back(all(Direction::kRead));
    taken[3].push_back(plain(false));
  }
  close(file);
  const auto rate = [&](std::vector<double>& of) {
    std::nth_element(of.begin(), of.begin() + kTimes / 2, of.end());
    return ByteRate{static_cast<double>(kWhole * kCount) / of[kTimes / 2]};
  };
  WARN(tier.description() << "; writes " << to_text(rate(taken[0])) << ", plain " << to_text(rate(taken[1]))
                          << "; reads " << to_text(rate(taken[2])) << ", plain " << to_text(rate(taken[3])));
  CHECK(rate(taken[0]).value > 0);
}

}  // namespace moebius::kv
