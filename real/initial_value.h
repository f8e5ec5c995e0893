// One element of a parameter's starting values, the same bits on the host and on any device: integers and one
// product in FP64.
#pragma once

#include <cstdint>

#include "real/cuda/storage.h"

namespace moebius {

// A rank's part of a parameter, row-major, experts one after the other.
struct InitialValues {
  std::uint64_t parameter = 0;         // the key of seed, role and layer
  double constant = 0;                 // of every element
  double scale = 0;                    // of the random number that is added to it
  std::int64_t rows = 0, columns = 0;  // of one expert
  std::int64_t first_expert = 0, first_column = 0;
  // Of up to three matrices that stand one below the other: where the first and the second one end here, and
  // what lies between a row here and its row of the whole.
  std::int64_t end[2] = {}, first_row[3] = {};

  MOEBIUS_BOTH std::uint64_t row_key(std::int64_t expert, std::int64_t row) const;
  MOEBIUS_BOTH double value(std::uint64_t row_key, std::int64_t column) const;
  // Of element `index` of the part.
  MOEBIUS_BOTH double operator()(std::int64_t index) const {
    return value(row_key(index / (rows * columns), index / columns % rows), index % columns);
  }
};

// The mixer of MurmurHash3 (Appleby, public domain).
MOEBIUS_BOTH std::uint64_t mixed_key(std::uint64_t z) {
  z = (z ^ (z >> 33)) * 0xff51afd7ed558ccdu;
  z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53u;
  return z ^ (z >> 33);
}

MOEBIUS_BOTH std::uint64_t InitialValues::row_key(std::int64_t expert, std::int64_t row) const {
  const std::uint64_t of_expert = mixed_key(parameter ^ static_cast<std::uint64_t>(first_expert + expert));
  const int part = row < end[0] ? 0 : row < end[1] ? 1 : 2;
  return mixed_key(of_expert + static_cast<std::uint64_t>(first_row[part] + row));
}

MOEBIUS_BOTH double InitialValues::value(std::uint64_t row_key, std::int64_t column) const {
  if (scale == 0) return constant;
  const std::uint64_t bits = mixed_key(row_key + static_cast<std::uint64_t>(first_column + column));
  const std::int64_t sum = static_cast<std::int64_t>((bits & 0xffffu) + (bits >> 16 & 0xffffu) +
                                                     (bits >> 32 & 0xffffu) + (bits >> 48));
  constexpr std::int64_t kMean = 2 * 0xffff;
  return static_cast<double>(sum - kMean) * scale;
}

}  // namespace moebius
