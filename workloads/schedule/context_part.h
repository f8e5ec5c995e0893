// How ops work on sequences of which the members of a context group hold parts, where keys are not gathered.
#pragma once

#include <cstdint>

#include "workloads/schedule/op.h"

namespace moebius {

// Op::match of compute ops. kAttention and its gradient: which keys the rows of this member meet; kInput, kRotary and its
// gradient: kRingStep where a member's rows are those of the ring, else they are one run of the sequence.
inline constexpr std::uint32_t kGatheredKeys = 0;  // those of all members, one member after the other
inline constexpr std::uint32_t kGatheredAll = 1;   // the same, and the queries are gathered as well
inline constexpr std::uint32_t kRingStep = 2;      // + j: those of the member j places before

// A ring cuts each sequence into two chunks a member, of which member i holds number i and the i-th from the end: causal
// attention then is the same work for all in every step.
inline bool is_zigzag(const Op& op) {
  return op.match >= kRingStep;
}
inline int ring_step(const Op& op) {
  return static_cast<int>(op.match - kRingStep);
}

// Shape::k of an all-to-all of a context group.
inline constexpr std::int64_t kHeadsOut = 1;   // x[m,n] -> [m*size, n/size]: column block i goes to member i, rows member by member
inline constexpr std::int64_t kHeadsBack = 2;  // and back: x[m,n] -> [m/size, n*size]
inline constexpr std::int64_t kRingShift = 3;  // operands go to the next member as they are
inline bool is_ring_shift(const Op& op) {
  return op.kind == OpKind::kAllToAll && op.shape.k == kRingShift;
}

// Shape::k of a kAdd: o[m,n], lse[m,heads], o, lse -> o, lse: two attentions of the same queries to different keys as one.
inline constexpr std::int64_t kMergeAttention = 3;

}  // namespace moebius
