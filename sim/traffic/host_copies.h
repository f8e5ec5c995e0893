// Copies between a device and the memory of its host: over the device's own link (PCIe or C2C), and over the
// memory of the node, which all of its devices share.
#pragma once

#include "sim/network/transfer.h"
#include "sim/network/wire_table.h"
#include "sim/traffic/sites.h"
#include "workloads/schedule/op.h"

namespace moebius {

// One flow, that of the representative of `rank_class`. The ranks of the class on its node copy at the same
// time: the flow takes of the node's memory as much as all of them. A machine without a link to a host
// (virtual ranks, a CPU) copies inside its memory. `shares_wires` false: the copy is all latency, for
// networks that know messages between devices alone.
TransferPlan host_copy(const Op& op, int rank_class, const Sites& sites, WireTable& wires, bool shares_wires);

}  // namespace moebius
