// Communication between ranks of one device or host as the executors carry it out: no algorithm to choose and
// no wire between devices, but members that copy what they get (hw/cluster.h, LocalExchange).
#pragma once

#include <string>
#include <vector>

#include "hw/cluster.h"
#include "workloads/routing/routing.h"
#include "workloads/schedule/op.h"

namespace moebius {

// Op::payload in the bytes that are really copied.
double copied_bytes(const Op& op, const LocalExchange& exchange);

struct ExchangeRound {
  double latency = 0;         // s
  std::vector<double> bytes;  // that each member copies; where the kind has a rate of its own: as many as
                              // take the same time at the rate of the device's wire
};

// The rounds of an op among `members` members (`route`: of dispatch and combine, else null). With B the
// payload each member copies in a round
// - all-reduce: B (a shard of every member, summed), then B (the other shards, gathered); reduce-scatter,
//   all-gather, all-to-all, broadcast: B, in one round;
// - dispatch: the rows that it receives; combine: the rows that come back for its tokens; where rows are
//   packed, of a dispatch also those that it sends. Its own are among both;
// - send: the message; one member, the sender. Receive: no round, what it takes is in the message.
// Reductions and gathers of several operands are so many times the rounds, of an n-th of the bytes each;
// weights that travel with tokens are a round without bytes.
std::vector<ExchangeRound> exchange_rounds(const Op& op, const Route* route, int members,
                                           const LocalExchange& exchange);

// What a profile calls the exchange of one kind in one format: "exchange all_reduce bf16".
std::string exchange_name(OpKind kind, DType dtype);

}  // namespace moebius
