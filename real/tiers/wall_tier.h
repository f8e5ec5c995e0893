// What tiers on the host's clock have in common: they differ in who moves the bytes.
#pragma once

#include "real/tiers/transfer_service.h"

namespace moebius::kv {

class WallTier : public Tier {
 public:
  const TierShape& shape() const override { return shape_; }
  Time now() const override { return service_.now(); }
  TransferId submit(const BlockTransfer& transfer) override {
    check_transfer(shape_, transfer, true);
    return service_.submit(transfer);
  }
  bool cancel(TransferId transfer) override { return service_.cancel(transfer); }
  std::vector<TransferDone> wait(Time until) override { return service_.wait(until); }
  Time next() const override { return service_.idle() ? kForever : now(); }
  TierCounters counters() const override { return service_.counters(); }

 protected:
  WallTier(const TierShape& shape, HostClock::time_point zero) : shape_(shape), service_(zero) {}

  TierShape shape_;
  TransferService service_;
};

}  // namespace moebius::kv
