// Which tokens of a sequence a member of a context group holds, and attention where keys are not gathered.
#pragma once

#include "real/host/op_context.h"
#include "workloads/schedule/context_part.h"

namespace moebius {

// Of one sequence: `rows` on each member.
struct ContextRows {
  std::int64_t members = 1, mine = 0, rows = 0;
  bool zigzag = false;

  ContextRows(std::int64_t all, std::int64_t member, std::int64_t rows_of_sequence, bool of_ring)
      : members(all), mine(member), rows(rows_of_sequence), zigzag(of_ring) {}
  template <class Real>
  ContextRows(const OpContext<Real>& c, std::int64_t rows_of_sequence)
      : members(c.size_of(GroupRole::kContext)),
        mine(c.index_in(GroupRole::kContext)),
        rows(rows_of_sequence),
        zigzag(is_zigzag(c.op())) {}

  // Runs of consecutive positions: one, or the two chunks of a ring.
  struct Run {
    std::int64_t row = 0, position = 0, count = 0;
  };
  std::vector<Run> runs() const {
    if (!zigzag) return {{0, mine * rows, rows}};
    const std::int64_t chunk = rows / 2;
    return {{0, mine * chunk, chunk}, {chunk, (2 * members - 1 - mine) * chunk, chunk}};
  }
  // In its sequence, of the member's row.
  std::int64_t position_of(std::int64_t row) const {
    for (const Run& run : runs())
      if (row < run.row + run.count) return run.position + row - run.row;
    return 0;
  }
};

// kAttention and kAttentionGrad of a step of a ring, kAdd that merges two of them.
template <class Real>
void attend_in_ring(OpContext<Real>& context);
template <class Real>
void attend_back_in_ring(OpContext<Real>& context);
template <class Real>
void merge_attention(OpContext<Real>& context);
// The same of gathered queries: heads are cut, not tokens.
template <class Real>
void attend_to_all(OpContext<Real>& context);
template <class Real>
void attend_back_to_all(OpContext<Real>& context);

}  // namespace moebius
