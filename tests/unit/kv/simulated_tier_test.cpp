// Transfers of a simulated tier against times that follow from its law.
#include "workloads/serving/kv/simulated_tier.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius::kv {
namespace {

using namespace literals;

// Reads: 10 us, then 1 byte a ns; writes: 4 us, then 0.5 bytes a ns. No more than a read in 2 us.
TierLaw law() {
  return {.read = {{1e9}, 5e5, 10_us}, .write = {{5e8}, 0, 4_us}};
}

SimulatedTier tier(int depth, TierLaw with = law()) {
  return {{.block_bytes = 10000, .blocks = 100, .depth = depth, .write_grain = 1}, with};
}

BlockTransfer transfer(Direction direction, int pieces, std::int64_t bytes, int priority = 0) {
  BlockTransfer result{direction, {}, priority};
  for (int i = 0; i < pieces; ++i) result.pieces.push_back({i, 0, bytes, nullptr});
  return result;
}

// The end of each transfer, by id, once all are done.
std::vector<Time> ends(SimulatedTier& tier) {
  std::map<TransferId, Time> by_id;
  while (tier.next() != kForever) {
    for (const TransferDone& done : tier.wait(kForever)) by_id[done.id] = done.end;
  }
  std::vector<Time> result;
  for (const auto& [id, end] : by_id) result.push_back(end);
  return result;
}

TEST_CASE("a read alone takes the latency and its bytes at the rate") {
  SimulatedTier one = tier(4);
  one.submit(transfer(Direction::kRead, 1, 10000));
  CHECK(ends(one) == std::vector<Time>{20_us});  // 10 us + 10000 B / (1 B/ns)
}

TEST_CASE("a small read takes the latency and the time between two operations at the most there can be") {
  SimulatedTier one = tier(4);
  one.submit(transfer(Direction::kRead, 1, 100));
  CHECK(ends(one) == std::vector<Time>{12_us});  // 10 us + 1 / (500,000 / s), more than 0.1 us
}

TEST_CASE("reads in service pass their latencies together and share the rate") {
  SimulatedTier two = tier(2);
  two.submit(transfer(Direction::kRead, 1, 10000));
  two.submit(transfer(Direction::kRead, 1, 4000));
  CHECK(ends(two) == std::vector<Time>{20_us, 24_us});  // 10 + 10, + 4
}

TEST_CASE("what goes beyond the depth waits and pays its latency afterwards") {
  SimulatedTier deep = tier(1);
  deep.submit(transfer(Direction::kRead, 1, 10000));
  deep.submit(transfer(Direction::kRead, 1, 10000));
  CHECK(ends(deep) == std::vector<Time>{20_us, 40_us});
  CHECK(deep.counters().deepest == 1);
}

TEST_CASE("many small reads come to depth over latency plus work, and no more than the operations a second") {
  // 396 reads of 2 us work. Depth 3: three every 10 + 2 us, as one ends, the next begins. Depth 32: one every
  // 2 us once the first has come to the device.
  SimulatedTier shallow = tier(3), deep = tier(32);
  for (SimulatedTier* each : {&shallow, &deep}) {
    for (int i = 0; i < 4; ++i) each->submit(transfer(Direction::kRead, 99, 2000));
  }
  CHECK(ends(shallow).back() ==
        1588_us);                      // the last three begin after 131 x 12 us and end 12, 14, 16 us later
  CHECK(ends(deep).back() == 802_us);  // 10 us + 396 x 2 us
}

TEST_CASE("operations that take parts of a nanosecond come to their rate") {
  TierLaw fast = law();
  fast.read = {{1e12}, 3e9, 0_ns};
  SimulatedTier one = tier(64, fast);
  one.submit(transfer(Direction::kRead, 90, 1));
  CHECK(ends(one) == std::vector<Time>{30_ns});
}

TEST_CASE("reads and writes share a disk, and a duplex link not") {
  SimulatedTier disk = tier(2), link = [] {
    TierLaw both = law();
    both.duplex = true;
    return tier(2, both);
  }();
  for (SimulatedTier* each : {&disk, &link}) {
    each->submit(transfer(Direction::kRead, 1, 10000));
    each->submit(transfer(Direction::kWrite, 1, 5000));
  }
  // Apart: 10 + 10 us; 4 + 10 us. Together the write comes to the device first, after 4 us, and has it
  // for 10.
  CHECK(ends(link) == std::vector<Time>{20_us, 14_us});
  CHECK(ends(disk) == std::vector<Time>{24_us, 14_us});
}

TEST_CASE("a transfer with a higher priority overtakes what waits, not what is in service") {
  SimulatedTier one = tier(1);
  one.submit(transfer(Direction::kRead, 1, 10000));
  one.submit(transfer(Direction::kWrite, 1, 5000));
  one.submit(transfer(Direction::kRead, 1, 10000, 1));
  CHECK(ends(one) == std::vector<Time>{20_us, 54_us, 40_us});  // 20, + 20, + 4 + 10
}

TEST_CASE("what is cancelled while it waits leaves its place to the next") {
  SimulatedTier one = tier(1);
  one.submit(transfer(Direction::kRead, 1, 10000));
  const TransferId dropped = one.submit(transfer(Direction::kRead, 1, 10000));
  one.submit(transfer(Direction::kRead, 1, 10000));
  REQUIRE(one.cancel(dropped));
  const auto first = one.wait(kForever);
  REQUIRE(first.size() == 1);
  CHECK(first[0].id == dropped);
  CHECK(first[0].outcome == Outcome::kCancelled);
  CHECK(first[0].end == 0_us);
  CHECK(ends(one) == std::vector<Time>{20_us, 40_us});
}

TEST_CASE("the clock comes to where it was told to wait for, and no further than the first that is done") {
  SimulatedTier one = tier(4);
  CHECK(one.wait(5_us).empty());
  CHECK(one.now() == 5_us);
  CHECK(one.next() == kForever);
  one.submit(transfer(Direction::kRead, 1, 10000));
  CHECK(one.wait(9_us).empty());
  CHECK(one.now() == 9_us);
  CHECK(one.next() <= 25_us);
  REQUIRE(one.wait(1_s).size() == 1);
  CHECK(one.now() == 25_us);  // 5 us + 20 us
  CHECK(one.wait(kForever).empty());
  CHECK(one.now() == 25_us);
}

TEST_CASE("the parts of a block arrive layer by layer when each is a transfer of its own") {
  SimulatedTier one = tier(1);
  for (std::int64_t layer = 0; layer < 4; ++layer)
    one.submit({Direction::kRead, {{7, layer * 2500, 2500, nullptr}}});
  CHECK(ends(one) == std::vector<Time>{12500_ns, 25_us, 37500_ns, 50_us});  // 10 us + 2.5 us each
}

TEST_CASE("equal runs take equal times, whatever they are asked in between") {
  SimulatedTier calm = tier(3), nervous = tier(3);
  for (SimulatedTier* each : {&calm, &nervous}) {
    for (int i = 0; i < 20; ++i) {
      const Direction direction = i % 3 == 0 ? Direction::kWrite : Direction::kRead;
      each->submit(transfer(direction, 1 + i % 4, 300 + 977 * i % 9000));
    }
  }
  std::map<TransferId, Time> asked;
  for (Time until{0}; nervous.next() != kForever; until += 7_us) {
    for (const TransferDone& done : nervous.wait(until)) asked[done.id] = done.end;
  }
  const std::vector<Time> expected = ends(calm);
  REQUIRE(asked.size() == expected.size());
  for (const auto& [id, end] : asked) CHECK(end == expected[static_cast<std::size_t>(id)]);
}

}  // namespace
}  // namespace moebius::kv
