// Dispatch and combine as the kernels do them: traffic between the members, with what the kernel itself
// costs.
#pragma once

#include <vector>

#include "hw/cluster.h"
#include "sim/traffic/collectives.h"
#include "workloads/cost/exchange_model.h"
#include "workloads/schedule/op.h"

namespace moebius {

// Algorithm::kHierarchical: high throughput, as route_traffic(). kDirect: low latency, every token to every
// one of its experts by itself. kAuto: low latency for up to 128 tokens of a rank, for which its buffers are
// made.
ExchangeFamily exchange_family(const Op& op, const Route& route);

// What the busiest member moves by this kernel. `packages`: which one each member stands in.
ExchangeLoad exchange_load(const Op& op, const Route& route, const ExchangeKernel& kernel,
                           const std::vector<int>& packages);

// Algorithm::kLibrary: rows that a member holds before the library's all-to-all, a row for each expert of a
// token, its own share included as collectives count: as if every member had as many to send as the one that
// sends or receives most.
double all_to_all_rows(const Route& route);

// Algorithm::kRing: rows that every member gathers, as many of each as the one with most tokens has; sums of
// as many are scattered on the way back.
double gathered_rows(const Route& route);

// The edges; as latency what exchange_time() says before the pipeline runs full, as least_seconds its slowest
// stage; as memory_bytes what exchange_memory() says, as held what holds the cores. On an idle network the
// step takes exchange_time() where every member moves what the busiest one does.
Traffic expert_exchange(const Op& op, const Route& route, const GroupSites& group, const Cluster& cluster);

}  // namespace moebius
