#include "real/tiers/transfer_service.h"

#include <system_error>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::kv {

Time TransferService::now() const {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(HostClock::now() - zero_).count()};
}

TransferId TransferService::submit(const BlockTransfer& transfer) {
  TransferId id = 0;
  {
    std::lock_guard lock(mutex_);
    CHECK(!closed_, "submit() to a tier that is going away");
    id = ledger_.add(transfer, now());
  }
  transfer.pieces.size() == 1 ? work_.notify_one() : work_.notify_all();
  if (wake_) wake_();
  return id;
}

bool TransferService::cancel(TransferId transfer) {
  std::lock_guard lock(mutex_);
  const bool cancelled = ledger_.cancel(transfer, now());
  done_.notify_all();
  return cancelled;
}

std::vector<TransferDone> TransferService::wait(Time until) {
  std::unique_lock lock(mutex_);
  const auto something = [&] { return ledger_.has_done() || ledger_.idle(); };
  if (until == kForever) {
    done_.wait(lock, something);
  } else {
    done_.wait_until(lock, zero_ + std::chrono::nanoseconds(until.ns), something);
  }
  return ledger_.take_done();
}

bool TransferService::idle() const {
  std::lock_guard lock(mutex_);
  return ledger_.idle() && !ledger_.has_done();
}

TierCounters TransferService::counters() const {
  std::lock_guard lock(mutex_);
  return ledger_.counters(now());
}

std::optional<TakenPiece> TransferService::take() {
  std::unique_lock lock(mutex_);
  work_.wait(lock, [&] { return closed_ || ledger_.waiting(); });
  if (closed_) return {};
  return ledger_.take(now());
}

std::optional<TakenPiece> TransferService::take_now() {
  std::lock_guard lock(mutex_);
  if (closed_ || !ledger_.waiting()) return {};
  return ledger_.take(now());
}

void TransferService::finish(const TakenPiece& piece, const std::string& failure) {
  std::lock_guard lock(mutex_);
  ledger_.finish(piece, now(), failure);
  if (ledger_.has_done()) done_.notify_all();
}

bool TransferService::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

void TransferService::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    ledger_.cancel_all(now());
  }
  work_.notify_all();
  done_.notify_all();
  if (wake_) wake_();
}

TransferThreads::TransferThreads(TransferService& service, int threads, CarryOut carry_out)
    : service_(service), carry_out_(std::move(carry_out)) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { run(i); });
  } catch (const std::system_error& error) {
    end();
    throw run_error(fmt::format("{} threads for transfers: number {} is refused: {}", threads,
                                threads_.size() + 1, error.what()));
  }
}

TransferThreads::~TransferThreads() {
  end();
}

void TransferThreads::end() {
  service_.close();
  for (std::thread& thread : threads_) thread.join();
}

void TransferThreads::run(int thread) {
  while (const auto piece = service_.take()) service_.finish(*piece, carry_out_(*piece, thread));
}

}  // namespace moebius::kv
