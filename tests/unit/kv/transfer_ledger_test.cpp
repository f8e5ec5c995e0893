// The book of a tier's transfers, without a clock of its own.
#include "workloads/serving/kv/transfer_ledger.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius::kv {
namespace {

using namespace literals;

BlockTransfer read_of(std::vector<std::int64_t> blocks, int priority = 0) {
  BlockTransfer transfer{Direction::kRead, {}, priority};
  for (const std::int64_t block : blocks) transfer.pieces.push_back({block, 0, 64, nullptr});
  return transfer;
}

TEST_CASE("pieces go by priority, then in the order of submission, and within a transfer in its own") {
  TransferLedger ledger;
  ledger.add(read_of({1, 2}), 0_ns);
  ledger.add(read_of({3}), 0_ns);
  ledger.add(read_of({4}, 1), 0_ns);
  std::vector<std::int64_t> blocks;
  while (ledger.waiting()) blocks.push_back(ledger.take(1_ns).piece.block);
  CHECK(blocks == std::vector<std::int64_t>{4, 1, 2, 3});
}

TEST_CASE("a transfer is done with its last piece, whatever the order in which they end") {
  TransferLedger ledger;
  const TransferId id = ledger.add(read_of({1, 2}), 5_ns);
  const TakenPiece first = ledger.take(10_ns), second = ledger.take(20_ns);
  ledger.finish(second, 30_ns, "");
  CHECK_FALSE(ledger.has_done());
  ledger.finish(first, 40_ns, "");
  const auto done = ledger.take_done();
  REQUIRE(done.size() == 1);
  CHECK(done[0].id == id);
  CHECK(done[0].outcome == Outcome::kGood);
  CHECK(done[0].submitted == 5_ns);
  CHECK(done[0].start == 10_ns);
  CHECK(done[0].end == 40_ns);
  CHECK(ledger.idle());
}

TEST_CASE("what is taken back before it is in service is done at once, and no piece of it is served") {
  TransferLedger ledger;
  const TransferId id = ledger.add(read_of({1, 2}), 0_ns);
  REQUIRE(ledger.cancel(id, 7_ns));
  CHECK_FALSE(ledger.waiting());
  const auto done = ledger.take_done();
  REQUIRE(done.size() == 1);
  CHECK(done[0].outcome == Outcome::kCancelled);
  CHECK(done[0].end == 7_ns);
  CHECK_FALSE(ledger.cancel(id, 8_ns));  // it is done
}

TEST_CASE("a cancelled transfer waits for its pieces in service and is not good even if all of them moved") {
  TransferLedger ledger;
  const TransferId id = ledger.add(read_of({1}), 0_ns);
  const TakenPiece piece = ledger.take(1_ns);
  REQUIRE(ledger.cancel(id, 2_ns));
  CHECK_FALSE(ledger.has_done());
  ledger.finish(piece, 3_ns, "");
  CHECK(ledger.take_done()[0].outcome == Outcome::kCancelled);
}

TEST_CASE("one failed piece fails the transfer with its sentence and drops what waits of it") {
  TransferLedger ledger;
  ledger.add(read_of({1, 2, 3}), 0_ns);
  const TakenPiece first = ledger.take(0_ns), second = ledger.take(0_ns);
  ledger.finish(first, 1_ns, "block 1 is gone");
  CHECK_FALSE(ledger.waiting());
  ledger.finish(second, 2_ns, "");
  const auto done = ledger.take_done();
  REQUIRE(done.size() == 1);
  CHECK(done[0].outcome == Outcome::kFailed);
  CHECK(done[0].failure == "block 1 is gone");
}

TEST_CASE("a failure is a failure of a transfer that was cancelled too") {
  TransferLedger ledger;
  const TransferId id = ledger.add(read_of({1}), 0_ns);
  const TakenPiece piece = ledger.take(0_ns);
  ledger.cancel(id, 1_ns);
  ledger.finish(piece, 2_ns, "block 1 is gone");
  CHECK(ledger.take_done()[0].outcome == Outcome::kFailed);
}

TEST_CASE("counters tell bytes and pieces by direction and the time with anything in service") {
  TransferLedger ledger;
  ledger.add(read_of({1, 2}), 0_ns);
  ledger.add({Direction::kWrite, {{3, 0, 16, nullptr}}}, 0_ns);
  const TakenPiece first = ledger.take(10_ns), second = ledger.take(15_ns);
  ledger.finish(first, 20_ns, "");
  ledger.finish(second, 30_ns, "");  // busy from 10 to 30
  const TakenPiece third = ledger.take(100_ns);
  const TierCounters counters = ledger.counters(105_ns);  // and from 100 on
  CHECK(counters.read_pieces == 2);
  CHECK(counters.read_bytes == 128);
  CHECK(counters.written_pieces == 0);
  CHECK(counters.busy == 25_ns);
  CHECK(counters.deepest == 2);
  ledger.finish(third, 110_ns, "");
  CHECK(ledger.counters(200_ns).written_bytes == 16);
  CHECK(ledger.counters(200_ns).busy == 30_ns);
}

TEST_CASE("a transfer of nothing is done at once") {
  TransferLedger ledger;
  ledger.add({}, 3_ns);
  const auto done = ledger.take_done();
  REQUIRE(done.size() == 1);
  CHECK(done[0].outcome == Outcome::kGood);
  CHECK(done[0].start == 3_ns);
}

}  // namespace
}  // namespace moebius::kv
