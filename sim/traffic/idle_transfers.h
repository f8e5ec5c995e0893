// What a communication op takes on a network that carries nothing else: the time that a run at alpha-beta
// takes for it.
#pragma once

#include <memory>

#include "workloads/study/search/transfer_times.h"

namespace moebius {

std::unique_ptr<TransferTimes> idle_transfers(const Cluster& cluster, const Layout& layout);

}  // namespace moebius
