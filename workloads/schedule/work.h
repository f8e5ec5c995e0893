// What one op of a fragment means for the ranks that run it: members of an expert group differ in their rows.
#pragma once

#include <vector>

#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"

namespace moebius {

// True for the compute kinds whose rows are those that a route sends to this member (gates have a route, too,
// but see the member's own tokens).
bool has_member_rows(const Op& op);

// The shape of a routed op on member `member` of its expert group; op.shape, with the rows of the busiest
// member, for others.
Shape member_shape(const Op& op, const Fragment& fragment, int member);

// Of an op by its shape; attention over the sequences of a batch, the choice of keys and the delta rule by
// the length of each.
Flops op_flops(const Op& op, const Fragment& fragment);

// Payload that a rank sends to other ranks, whatever the algorithm: the least that can do it.
// - all-reduce: 2(n-1)/n of the payload; reduce-scatter, all-gather, all-to-all: (n-1)/n; broadcast: (n-1)/n,
// averaged over
//   the members; send: all of it; receive: nothing.
// - dispatch: the rows that this member's tokens need on other ranks, one for each token and rank; combine:
// the rows that it
//   sends back. Both times the payload of a row.
double sent_bytes(const Op& op, const Fragment& fragment, int group_size, int member);

// The same of the way that a dispatch or a combine goes (Op::algorithm): with kDirect and kLibrary a row for
// each expert that a token uses on another rank; with kRing the tokens of all to all. Others send the least.
double carried_bytes(const Op& op, const Fragment& fragment, int group_size, int member);

// Members of the representative's expert group that belong to its class: all of them in a folded stage; {0}
// of one that is in no expert group.
std::vector<int> members_of_class(const Layout& layout, std::int32_t rank_class);

// FLOPs and carried bytes of an op, summed over the ranks of a class.
struct ClassWork {
  double flops = 0, sent = 0;
};
ClassWork class_work(const Op& op, const Fragment& fragment, const Layout& layout, std::int32_t rank_class);

}  // namespace moebius
