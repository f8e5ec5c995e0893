// The parameters of a schedule's ranks as blocks of Hugging Face weights: fused matrices are several, rotary
// columns stand in another order, the projection of a multi-token-prediction module has its halves swapped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/weights/weight_names.h"
#include "workloads/checkpoint/checkpoint_index.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

// A block of a weight and where it stands in the parameter [experts * rows, columns].
struct Piece {
  std::string name;
  Region from;
  std::int64_t to_row = 0, to_column = 0;
  bool vector = false;  // one dimension: a row of the parameter
  // Rotary rows: of every `head` rows the last `rotated` turn in the schedule, of which (i, i + rotated/2)
  // are a pair (kRotary, models/op_kind.h). In DeepSeek's weights neighbours are (2i, 2i+1); where a part of
  // each head of queries and keys turns it stands first. 0: as they stand.
  std::int64_t head = 0, rotated = 0;
  bool first = false;
};

// What a kRank tensor of the weights' memory kind consists of.
std::vector<Piece> pieces_of(const Tensor& parameter, const Model& model, WeightNaming naming);

// The row of the weight's block that stands in row `row` of the parameter's.
std::int64_t stored_row(const Piece& piece, std::int64_t row);

// function(position in the parameter's values, row and column in the weight) for every element of the block.
template <class Function>
void for_each_element(const Piece& piece, const Tensor& parameter, const Function& function) {
  const std::int64_t stride = piece.vector ? 1 : parameter.columns;
  for (std::int64_t row = 0; row < piece.from.rows; ++row) {
    const std::int64_t stored = piece.from.first_row + stored_row(piece, row);
    for (std::int64_t column = 0; column < piece.from.columns; ++column) {
      const std::int64_t held = (piece.to_row + row) * stride + piece.to_column + column;
      function(static_cast<std::size_t>(held), stored, piece.from.first_column + column);
    }
  }
}

}  // namespace moebius
