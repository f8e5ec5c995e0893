// Ops that work on some rows of their tensors: the pieces into which a collective and its matrix product are
// cut.
#pragma once

#include <cstdint>
#include <optional>

#include "workloads/schedule/fragment.h"

namespace moebius {

// Rows [first, first + rows) of each of `blocks` equal blocks of block_rows rows: the rows of a member's
// block in a tensor that was gathered from `blocks` members, or (one block) of a member's own rows.
struct RowWindow {
  std::int64_t blocks = 1, block_rows = 0, first = 0, rows = 0;

  std::int64_t row(std::int64_t block) const {
    return block * block_rows + first;
  }  // the first one of a block
};

// The rows that the op reads or writes of an operand (inputs, then outputs); none: all of them. kGemm,
// kGemmDgrad, kQuantise, kAllGather, kReduceScatter and kAdd of Shape::groups > 0 work on a window of
// their first input (kAdd: of both) and of their output: groups is the number of members, Shape::kv the
// first row in the block of each, and Shape::m counts the window's rows alone (all-gather: of one member).
// kAbsorbQueries and kAbsorbedValues of Shape::groups 1 read and write m rows of a batch, the first of
// them at kv. kSend of Shape::k > 0 sends m rows, the first of them at kv.
std::optional<RowWindow> row_window(const Fragment& fragment, const Op& op, int operand);

}  // namespace moebius
