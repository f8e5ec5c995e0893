// What communication takes on an idle network, told by whoever simulates networks: bounds of runs at alpha-beta,
// where no transfer delays another, may count on it.
#pragma once

#include <functional>
#include <memory>

#include "hw/cluster.h"
#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"

namespace moebius {

class TransferTimes {
 public:
  virtual ~TransferTimes() = default;
  // Seconds of op `index`, a transfer that has somebody to meet but no receive, as a member of `rank_class` of
  // the layout. By several threads.
  virtual double alone(const Fragment& fragment, int index, int rank_class) = 0;
};

// The cluster outlives what is returned.
using KnowTransfers = std::function<std::unique_ptr<TransferTimes>(const Cluster&, const Layout&)>;

}  // namespace moebius
