// A tier's ledger between the threads that submit and wait and those that move the bytes, on the host's
// clock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "workloads/serving/kv/transfer_ledger.h"

namespace moebius::kv {

using HostClock = std::chrono::steady_clock;

class TransferService {
 public:
  explicit TransferService(HostClock::time_point zero) : zero_(zero) {}

  Time now() const;
  TransferId submit(const BlockTransfer& transfer);
  bool cancel(TransferId transfer);
  std::vector<TransferDone> wait(Time until);
  bool idle() const;  // nothing in flight, nothing to fetch
  TierCounters counters() const;

  // Of those that move the bytes.
  std::optional<TakenPiece> take();      // waits for one; nothing: closed
  std::optional<TakenPiece> take_now();  // nothing: none waits
  void finish(const TakenPiece& piece, const std::string& failure);
  bool closed() const;
  // Called after each submission and by close(), outside of the lock: for who cannot wait in take().
  void call_on_change(std::function<void()> wake) { wake_ = std::move(wake); }
  void close();  // takes back what waits; take() returns nothing from now on

 private:
  HostClock::time_point zero_;
  mutable std::mutex mutex_;
  std::condition_variable work_, done_;
  std::function<void()> wake_;
  TransferLedger ledger_;
  bool closed_ = false;
};

// Threads that carry out pieces until the service is closed. `carry_out` returns the failure, empty when
// there is none; the number is the thread's.
class TransferThreads {
 public:
  using CarryOut = std::function<std::string(const TakenPiece& piece, int thread)>;

  TransferThreads(TransferService& service, int threads, CarryOut carry_out);
  ~TransferThreads();  // closes the service

 private:
  void run(int thread);
  void end();

  TransferService& service_;
  CarryOut carry_out_;
  std::vector<std::thread> threads_;
};

}  // namespace moebius::kv
