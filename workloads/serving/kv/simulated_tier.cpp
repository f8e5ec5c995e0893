#include "workloads/serving/kv/simulated_tier.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw/error.h"

namespace moebius::kv {

SimulatedTier::SimulatedTier(const TierShape& shape, const TierLaw& law, Time start)
    : shape_(shape), law_(law), now_(start) {
  CHECK(shape.depth >= 1 && law.read.rate.value > 0 && law.write.rate.value > 0,
        fmt::format("depth={} rates {} {}", shape.depth, law.read.rate.value, law.write.rate.value));
}

std::string SimulatedTier::description() const {
  return fmt::format("simulated, {} blocks of {}, reads {}, writes {}, depth {}", shape_.blocks,
                     to_text(Bytes{static_cast<double>(shape_.block_bytes)}), to_text(law_.read.rate),
                     to_text(law_.write.rate), shape_.depth);
}

TransferId SimulatedTier::submit(const BlockTransfer& transfer) {
  check_transfer(shape_, transfer, false);
  const TransferId id = ledger_.add(transfer, now_);
  fill_service();
  return id;
}

bool SimulatedTier::cancel(TransferId transfer) {
  return ledger_.cancel(transfer, now_);
}

std::vector<TransferDone> SimulatedTier::wait(Time until) {
  while (!ledger_.has_done()) {
    const Time event = next();
    if (event > until || event == kForever) break;
    advance_to(event);
  }
  if (!ledger_.has_done() && until != kForever && until > now_) advance_to(until);
  return ledger_.take_done();
}

Time SimulatedTier::next() const {
  if (ledger_.has_done()) return now_;
  Time event = kForever;
  for (const Queue* queue : {&in_latency_, &in_work_}) {
    if (!queue->empty()) event = std::min(event, queue->begin()->first);
  }
  return event;
}

const ServiceLaw& SimulatedTier::law(Direction direction) const {
  return direction == Direction::kRead ? law_.read : law_.write;
}

void SimulatedTier::fill_service() {
  while (ledger_.waiting() && ledger_.in_service() < shape_.depth) {
    const TakenPiece piece = ledger_.take(now_);
    in_latency_.emplace(now_ + law(piece.direction).latency, piece);
  }
}

// A device works off one piece after the other; its free time is kept in parts of a nanosecond, so that many
// small pieces come to the rate.
void SimulatedTier::work_on(const TakenPiece& piece) {
  double& free_at = free_at_[law_.duplex && piece.direction == Direction::kWrite ? 1 : 0];
  const double work = law(piece.direction).work(static_cast<double>(piece.piece.bytes));
  free_at = std::max(free_at, static_cast<double>(now_.ns)) + work * 1e9;
  in_work_.emplace(time_from_seconds(free_at * 1e-9), piece);
}

// To at most the next event. Pieces that are done make room for others; those whose latency is over queue for
// the device.
void SimulatedTier::advance_to(Time time) {
  now_ = time;
  while (!in_work_.empty() && in_work_.begin()->first <= now_) {
    ledger_.finish(in_work_.begin()->second, now_, "");
    in_work_.erase(in_work_.begin());
  }
  fill_service();
  while (!in_latency_.empty() && in_latency_.begin()->first <= now_) {
    work_on(in_latency_.begin()->second);
    in_latency_.erase(in_latency_.begin());
  }
}

}  // namespace moebius::kv
