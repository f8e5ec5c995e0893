// The transfers of one tier from submission to completion: which piece is served next, what was taken back,
// what is done. It has neither clock nor threads, so that simulated and real tiers keep the same book.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "workloads/serving/kv/tier.h"

namespace moebius::kv {

struct TakenPiece {
  TransferId transfer = 0;
  Direction direction = Direction::kRead;
  Piece piece;
};

// Times given to it never go back.
class TransferLedger {
 public:
  TransferId add(const BlockTransfer& transfer, Time now);
  bool cancel(TransferId transfer, Time now);  // Tier's contract
  void cancel_all(Time now);

  bool waiting() const { return !order_.empty(); }
  TakenPiece take(Time now);  // into service: the next one by priority, transfer, piece; CHECKs waiting()
  // A piece in service came to its end; with a failure, what waits of its transfer is dropped.
  void finish(const TakenPiece& piece, Time now, const std::string& failure);

  int in_service() const { return in_service_; }
  bool idle() const { return open_.empty(); }
  bool has_done() const { return !done_.empty(); }
  std::vector<TransferDone> take_done();  // since the last call, by end, then id
  TierCounters counters(Time now) const;

 private:
  struct Open {
    BlockTransfer transfer;
    std::size_t next_piece = 0;
    int in_service = 0;
    TransferDone done;
  };
  using Place = std::pair<int, TransferId>;  // minus the priority, id

  void stop_waiting(Open& open);
  void close_if_over(TransferId id, Time now);

  std::map<TransferId, Open> open_;
  std::set<Place> order_;  // of transfers with pieces that wait
  std::vector<TransferDone> done_;
  TransferId next_id_ = 0;
  int in_service_ = 0;
  Time busy_since_;
  TierCounters counters_;
};

}  // namespace moebius::kv
