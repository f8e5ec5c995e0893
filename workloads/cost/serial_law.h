// What one core of a CPU takes for the ops of one table, as a sum of what such an op does:
//
//   time = a + b rows + c bytes + d products + e exponentials
//
// The constants are those of the table's kernel in the table's state of the caches, fitted to its measured
// values. Between two of them the law says how the time goes; at them it is corrected to what was measured.
#pragma once

#include <array>
#include <span>

#include "workloads/cost/analytic.h"

namespace moebius {

inline constexpr std::size_t kSerialTerms = 5;
using SerialTerms = std::array<double, kSerialTerms>;

// 1; rows, at each of which inner loops begin anew; bytes moved; operations of products, register tiles
// filled up; exponentials. Of a chip whose architecture is serial.
SerialTerms serial_terms(const Engine& engine, const CostQuery& query);

struct MeasuredTerms {
  SerialTerms terms = {};
  double seconds = 0;
};

// Constants, none negative, of the least sum of squared relative errors; all zero where there are fewer than
// two measurements for each term.
SerialTerms fit_serial_law(std::span<const MeasuredTerms> measured);

double serial_seconds(const SerialTerms& constants, const SerialTerms& terms);

}  // namespace moebius
