#include "workloads/serving/kv/transfer_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "hw/error.h"

namespace moebius::kv {
namespace {

void check_piece(const TierShape& shape, Direction direction, const Piece& piece) {
  CHECK(piece.block >= 0 && piece.block < shape.blocks,
        fmt::format("block={} blocks={}", piece.block, shape.blocks));
  const std::int64_t end = piece.offset + piece.bytes;
  CHECK(piece.offset >= 0 && piece.bytes > 0 && end <= shape.block_bytes,
        fmt::format("offset={} bytes={} block_bytes={}", piece.offset, piece.bytes, shape.block_bytes));
  if (direction == Direction::kRead) return;
  CHECK(piece.offset % shape.write_grain == 0 && (end % shape.write_grain == 0 || end == shape.block_bytes),
        fmt::format("offset={} bytes={} write_grain={}", piece.offset, piece.bytes, shape.write_grain));
}

}  // namespace

void check_transfer(const TierShape& shape, const BlockTransfer& transfer, bool with_memory) {
  for (const Piece& piece : transfer.pieces) {
    check_piece(shape, transfer.direction, piece);
    CHECK(!with_memory || piece.memory != nullptr, fmt::format("block={} without memory", piece.block));
  }
}

TransferId TransferLedger::add(const BlockTransfer& transfer, Time now) {
  const TransferId id = next_id_++;
  Open& open = open_[id];
  open.transfer = transfer;
  open.done.id = id;
  open.done.submitted = now;
  open.done.start = kForever;
  if (!transfer.pieces.empty()) order_.insert({-transfer.priority, id});
  close_if_over(id, now);
  return id;
}

bool TransferLedger::cancel(TransferId transfer, Time now) {
  const auto found = open_.find(transfer);
  if (found == open_.end()) return false;
  if (found->second.done.outcome == Outcome::kGood) found->second.done.outcome = Outcome::kCancelled;
  stop_waiting(found->second);
  close_if_over(transfer, now);
  return true;
}

void TransferLedger::cancel_all(Time now) {
  std::vector<TransferId> ids;
  for (const auto& [id, open] : open_) ids.push_back(id);
  for (const TransferId id : ids) cancel(id, now);
}

TakenPiece TransferLedger::take(Time now) {
  CHECK(waiting(), "take() with nothing that waits");
  const Place place = *order_.begin();
  Open& open = open_.at(place.second);
  const TakenPiece taken{place.second, open.transfer.direction, open.transfer.pieces[open.next_piece++]};
  if (open.next_piece == open.transfer.pieces.size()) order_.erase(place);
  open.done.start = std::min(open.done.start, now);
  ++open.in_service;
  if (in_service_++ == 0) busy_since_ = now;
  counters_.deepest = std::max(counters_.deepest, in_service_);
  return taken;
}

void TransferLedger::finish(const TakenPiece& piece, Time now, const std::string& failure) {
  Open& open = open_.at(piece.transfer);
  --open.in_service;
  if (--in_service_ == 0) counters_.busy += now - busy_since_;
  if (!failure.empty()) {
    stop_waiting(open);
    open.done.outcome = Outcome::kFailed;
    if (open.done.failure.empty()) open.done.failure = failure;
  } else if (piece.direction == Direction::kRead) {
    ++counters_.read_pieces;
    counters_.read_bytes += static_cast<double>(piece.piece.bytes);
  } else {
    ++counters_.written_pieces;
    counters_.written_bytes += static_cast<double>(piece.piece.bytes);
  }
  close_if_over(piece.transfer, now);
}

std::vector<TransferDone> TransferLedger::take_done() {
  std::vector<TransferDone> done = std::exchange(done_, {});
  std::sort(done.begin(), done.end(), [](const TransferDone& a, const TransferDone& b) {
    return std::tie(a.end, a.id) < std::tie(b.end, b.id);
  });
  return done;
}

TierCounters TransferLedger::counters(Time now) const {
  TierCounters counters = counters_;
  if (in_service_ > 0) counters.busy += now - busy_since_;
  return counters;
}

void TransferLedger::stop_waiting(Open& open) {
  order_.erase({-open.transfer.priority, open.done.id});
  open.next_piece = open.transfer.pieces.size();
}

void TransferLedger::close_if_over(TransferId id, Time now) {
  Open& open = open_.at(id);
  if (open.in_service > 0 || open.next_piece < open.transfer.pieces.size()) return;
  open.done.end = now;
  open.done.start = std::min(open.done.start, now);
  done_.push_back(std::move(open.done));
  open_.erase(id);
}

}  // namespace moebius::kv
