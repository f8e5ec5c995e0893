#include "workloads/cluster/checkpoints.h"

#include <algorithm>
#include <cmath>

namespace moebius {

namespace {

Time time_for(Bytes bytes, ByteRate rate) {
  constexpr double kNever = 1e9;  // s: longer than any run
  return rate.value > 0 ? time_from_seconds(std::min(kNever, bytes / rate)) : Time{};
}

}  // namespace

CheckpointCosts checkpoint_costs(const CheckpointPlan& plan, Bytes state, std::int64_t devices) {
  const Bytes share = state / static_cast<double>(devices);
  const Time to_storage = time_for(state, plan.storage), to_host = time_for(share, plan.host_copy),
             to_peer = time_for(share, plan.peer_copy);
  CheckpointCosts costs;
  costs.load = to_storage;
  costs.reload = to_peer + to_host;
  switch (plan.policy) {
    case CheckpointPolicy::kNone:
      return {{}, {}, {}, to_storage, to_storage};
    case CheckpointPolicy::kSync:
      costs.stall = costs.durable = to_storage;
      return costs;
    case CheckpointPolicy::kAsync:
    case CheckpointPolicy::kMemory:
      costs.stall = to_host;
      costs.durable = to_host + to_storage;
      costs.in_peers = to_host + to_peer;
      return costs;
  }
  return costs;
}

Time young_interval(Time stall, Time mtbf) {
  return time_from_seconds(std::sqrt(2 * stall.seconds() * mtbf.seconds()));
}

// Daly 2006, equation 37: for a cost below twice the time between faults, else that time.
Time daly_interval(Time stall, Time mtbf) {
  const double cost = stall.seconds(), apart = mtbf.seconds();
  if (cost >= 2 * apart) return mtbf;
  const double root = std::sqrt(cost / (2 * apart));
  return time_from_seconds(std::sqrt(2 * cost * apart) * (1 + root / 3 + root * root / 9) - cost);
}

}  // namespace moebius
