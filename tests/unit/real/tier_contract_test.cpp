// What every real tier does, whoever moves the bytes.
#include <algorithm>
#include <thread>

#include "real/tiers/host_tier.h"
#include "real/tiers/ssd_tier.h"
#include "tests/process.h"
#include "tests/unit/real/tier_bytes.h"
#include "workloads/serving/kv/simulated_tier.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius::kv {
namespace {

constexpr std::int64_t kBlock = 18432;  // 16 tokens of 576 BF16 numbers: not a multiple of a page
constexpr std::int64_t kTierBlocks = 24;

struct TierCase {
  std::string name;
  std::function<std::unique_ptr<Tier>(int depth)> make;
};

std::vector<TierCase> cases(const std::string& directory) {
  const auto ssd = [&](bool direct, bool ring) {
    return [directory, direct, ring](int depth) -> std::unique_ptr<Tier> {
      return std::make_unique<SsdTier>(SsdOptions{directory, kBlock, kTierBlocks, depth, direct, ring},
                                       HostClock::now());
    };
  };
  return {{"host memory",
           [](int depth) -> std::unique_ptr<Tier> {
             return std::make_unique<HostTier>(TierShape{kBlock, kTierBlocks, depth, 1}, HostClock::now());
           }},
          {"SSD by io_uring", ssd(true, true)},
          {"SSD by threads", ssd(true, false)},
          {"SSD by io_uring through the page cache", ssd(false, true)},
          {"SSD by threads through the page cache", ssd(false, false)}};
}

// The outcome of one transfer.
TransferDone done_of(Tier& tier, const BlockTransfer& transfer) {
  tier.submit(transfer);
  const auto done = tier.wait(kForever);
  REQUIRE(done.size() == 1);
  return done[0];
}

TEST_CASE("blocks that were written come back equal, at any depth and in any order") {
  const test::Scratch scratch;
  for (const TierCase& each : cases(scratch.path(""))) {
    for (const int depth : {1, 4, 32}) {
      INFO(each.name << ", depth " << depth);
      const auto tier = each.make(depth);
      Pages written(kTierBlocks * kBlock), found(kTierBlocks * kBlock);
      written.fill_randomly(7);
      for (std::int64_t i = 0; i < kTierBlocks; ++i) {
        const std::int64_t block = i * 7 % kTierBlocks;
        tier->submit({Direction::kWrite, {{block, 0, kBlock, written.at(block * kBlock)}}});
      }
      CHECK(all_good(*tier, kTierBlocks));
      BlockTransfer all{Direction::kRead, {}};
      for (std::int64_t block = kTierBlocks - 1; block >= 0; --block)
        all.pieces.push_back({block, 0, kBlock, found.at(block * kBlock)});
      CHECK(done_of(*tier, all).outcome == Outcome::kGood);
      CHECK(found.equals(written));
      CHECK(tier->counters().read_bytes == kTierBlocks * kBlock);
      CHECK(tier->counters().deepest <= depth);
    }
  }
}

TEST_CASE("parts of a block are read at any byte, and written by pages") {
  const test::Scratch scratch;
  for (const TierCase& each : cases(scratch.path(""))) {
    INFO(each.name);
    const auto tier = each.make(4);
    Pages written(kBlock), found(kBlock);
    written.fill_randomly(3);
    // Two pages and the rest of the block, each from memory that is not aligned.
    Pages shifted(kBlock + 1);
    std::memcpy(shifted.at(1), written.at(0), kBlock);
    CHECK(done_of(*tier, {Direction::kWrite, {{5, 0, 8192, shifted.at(1)}}}).outcome == Outcome::kGood);
    CHECK(done_of(*tier, {Direction::kWrite, {{5, 8192, kBlock - 8192, shifted.at(8193)}}}).outcome ==
          Outcome::kGood);
    BlockTransfer layers{Direction::kRead, {}};
    for (std::int64_t at = 0; at < kBlock; at += 1152)  // a token each
      layers.pieces.push_back({5, at, 1152, found.at(at)});
    CHECK(done_of(*tier, layers).outcome == Outcome::kGood);
    CHECK(found.equals(written));
  }
}

TEST_CASE("neighbours of a block that is written keep their bytes") {
  const test::Scratch scratch;
  for (const TierCase& each : cases(scratch.path(""))) {
    INFO(each.name);
    const auto tier = each.make(2);
    Pages first(kBlock), second(kBlock), third(kBlock), found(kBlock);
    first.fill_randomly(1), second.fill_randomly(2), third.fill_randomly(3);
    done_of(*tier, {Direction::kWrite, {{1, 0, kBlock, first.at(0)}, {2, 0, kBlock, second.at(0)}}});
    done_of(*tier, {Direction::kWrite, {{0, 0, kBlock, third.at(0)}, {3, 0, kBlock, third.at(0)}}});
    done_of(*tier, {Direction::kRead, {{1, 0, kBlock, found.at(0)}}});
    CHECK(found.equals(first));
    done_of(*tier, {Direction::kRead, {{2, 0, kBlock, found.at(0)}}});
    CHECK(found.equals(second));
  }
}

TEST_CASE("threads that use one tier at the same time each find their own bytes") {
  const test::Scratch scratch;
  for (const TierCase& each : cases(scratch.path(""))) {
    INFO(each.name);
    const auto tier = each.make(8);
    constexpr int kThreads = 4, kRounds = 20;
    std::mutex mutex;
    std::condition_variable changed;
    std::set<TransferId> done;  // whoever waits finds others' completions too
    const auto await = [&](TransferId id) {
      std::unique_lock lock(mutex);
      while (done.count(id) == 0) {
        lock.unlock();
        const auto news = tier->wait(tier->now() + Time{200'000});
        lock.lock();
        for (const TransferDone& each_done : news)
          if (each_done.outcome == Outcome::kGood) done.insert(each_done.id);
      }
    };
    std::vector<int> wrong(kThreads, 0);
    std::vector<std::thread> threads;
    for (int me = 0; me < kThreads; ++me) {
      threads.emplace_back([&, me] {
        Pages mine(kBlock), found(kBlock);
        for (int round = 0; round < kRounds; ++round) {
          mine.fill_randomly(static_cast<std::uint64_t>(1000 * me + round));
          const std::int64_t block = me + kThreads * (round % 6);
          await(tier->submit({Direction::kWrite, {{block, 0, kBlock, mine.at(0)}}}));
          await(tier->submit({Direction::kRead, {{block, 0, kBlock, found.at(0)}}}));
          wrong[static_cast<std::size_t>(me)] += found.equals(mine) ? 0 : 1;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(kThreads, 0));
  }
}

TEST_CASE("a cancelled transfer is done as cancelled and never as good") {
  const test::Scratch scratch;
  for (const TierCase& each : cases(scratch.path(""))) {
    INFO(each.name);
    const auto tier = each.make(1);
    Pages memory(kBlock);
    std::set<TransferId> cancelled;
    BlockTransfer many{Direction::kRead, std::vector<Piece>(200, {0, 0, kBlock, memory.at(0)})};
    // Each is cancelled at once. On a busy machine all 200 pieces may be read first: others follow until one
    // was in time.
    int submitted = 0;
    for (; submitted < 20 || (cancelled.empty() && submitted < 2'000); ++submitted) {
      const TransferId id = tier->submit(many);
      if (submitted % 2 == 0 && tier->cancel(id)) cancelled.insert(id);
    }
    CHECK(cancelled.size() >= 1);
    int seen = 0;
    while (tier->next() != kForever) {
      for (const TransferDone& done : tier->wait(kForever)) {
        ++seen;
        CHECK(done.outcome == (cancelled.count(done.id) > 0 ? Outcome::kCancelled : Outcome::kGood));
      }
    }
    CHECK(seen == submitted);
  }
}

TEST_CASE("a tier may go away with transfers in flight") {
  const test::Scratch scratch;
  for (const TierCase& each : cases(scratch.path(""))) {
    INFO(each.name);
    Pages memory(kBlock * kTierBlocks);
    const auto tier = each.make(4);
    for (std::int64_t block = 0; block < kTierBlocks; ++block)
      tier->submit({Direction::kWrite, {{block, 0, kBlock, memory.at(block * kBlock)}}});
  }
  CHECK(std::filesystem::is_empty(scratch.path("")));
}

// What a cache does when a prompt comes whose blocks lie on the disk: all of them are fetched layer by layer,
// the first layer of all blocks first, and what was to be written behind waits. Returns the order in which
// transfers end.
std::vector<TransferId> fetch_by_layer(Tier& tier, std::byte* memory) {
  constexpr std::int64_t kLayers = 4, kLayer = kBlock / kLayers, kPrompt = 3;
  for (std::int64_t block = 10; block < 13; ++block)
    tier.submit({Direction::kWrite, {{block, 0, kBlock, memory}}});
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    BlockTransfer transfer{Direction::kRead, {}, 1};
    for (std::int64_t block = 0; block < kPrompt; ++block)
      transfer.pieces.push_back({block, layer * kLayer, kLayer, memory + block * kBlock + layer * kLayer});
    tier.submit(transfer);
  }
  std::vector<TransferId> order;
  while (tier.next() != kForever) {
    for (const TransferDone& done : tier.wait(kForever)) order.push_back(done.id);
  }
  return order;
}

TEST_CASE("the same code fetches a prompt from a simulated tier and from real ones") {
  const test::Scratch scratch;
  Pages memory(kBlock * 3);
  const ServiceLaw law{{1e9}, 0, {1000}};
  SimulatedTier simulated({kBlock, kTierBlocks, 1, kPage}, {law, law, false});
  // The first write is in service before anything else is there; on a real tier it may end before the reads
  // come, and with it others.
  const auto expected = fetch_by_layer(simulated, memory.at(0));
  CHECK(expected == std::vector<TransferId>{0, 3, 4, 5, 6, 1, 2});
  for (const TierCase& each : cases(scratch.path(""))) {
    INFO(each.name);
    const auto order = fetch_by_layer(*each.make(1), memory.at(0));
    std::vector<TransferId> reads;
    std::copy_if(order.begin(), order.end(), std::back_inserter(reads),
                 [](TransferId id) { return id >= 3; });
    CHECK(reads == std::vector<TransferId>{3, 4, 5, 6});
    CHECK(order.size() == expected.size());
  }
}

TEST_CASE("waiting for a time returns at that time with nothing, and asking an idle tier at once") {
  const test::Scratch scratch;
  for (const TierCase& each : cases(scratch.path(""))) {
    INFO(each.name);
    const auto tier = each.make(4);
    CHECK(tier->wait(kForever).empty());
    CHECK(tier->next() == kForever);
    CHECK(tier->wait(tier->now() + Time{3'600'000'000'000}).empty());  // an hour, were anything in flight
  }
}

}  // namespace
}  // namespace moebius::kv
