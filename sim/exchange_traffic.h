// Communication between virtual ranks as the executors carry it out: no algorithm to choose and no wire
// between devices, but members that copy what they get (hw/cluster.h, LocalExchange).
#pragma once

#include <vector>

#include "hw/cluster.h"
#include "sim/traffic.h"
#include "workloads/routing/routing.h"
#include "workloads/schedule/layout.h"
#include "workloads/schedule/op.h"

namespace moebius {

// Op::payload in the bytes that are really copied.
double copied_bytes(const Op& op, const LocalExchange& exchange);

// The rounds of an op, one step each, with what every member copies in it as an edge to itself. With B the
// payload and n members, each copies in a round
// - all-reduce: B (a shard of every member, summed), then B (the other shards, gathered); reduce-scatter,
//   all-gather, all-to-all, broadcast: B, in one round;
// - dispatch: the rows that it receives; combine: the rows that come back for its tokens; where rows are
//   packed, also those that it sends. Its own are among both;
// - send: the message, by its sender alone.
// Reductions and gathers of several operands are so many times the rounds, of an n-th of the bytes each.
std::vector<Traffic> exchange_traffic(const Op& op, const Route* route, const Group& group,
                                      const LocalExchange& exchange);

}  // namespace moebius
