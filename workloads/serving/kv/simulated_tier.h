// A tier that moves no bytes: transfers take the time of a law (tier_law.h). Its clock goes only in wait().
#pragma once

#include "workloads/serving/kv/tier_law.h"
#include "workloads/serving/kv/transfer_ledger.h"

namespace moebius::kv {

class SimulatedTier : public Tier {
 public:
  SimulatedTier(const TierShape& shape, const TierLaw& law, Time start = {});

  const TierShape& shape() const override { return shape_; }
  std::string description() const override;
  Time now() const override { return now_; }
  TransferId submit(const BlockTransfer& transfer) override;
  bool cancel(TransferId transfer) override;
  std::vector<TransferDone> wait(Time until) override;
  Time next() const override;  // the end of a latency is an event too
  TierCounters counters() const override { return ledger_.counters(now_); }
  std::byte* memory(std::int64_t) override { return nullptr; }

 private:
  using Queue = std::multimap<Time, TakenPiece>;

  const ServiceLaw& law(Direction direction) const;
  void fill_service();
  void work_on(const TakenPiece& piece);
  void advance_to(Time time);

  TierShape shape_;
  TierLaw law_;
  Time now_;
  TransferLedger ledger_;
  Queue in_latency_, in_work_;  // by the end of it
  double free_at_[2] = {0,
                        0};  // when each device has worked off its queue, ns; the second is of duplex writes
};

}  // namespace moebius::kv
