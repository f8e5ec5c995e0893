// Attention of sequences with a few rows each over their caches: tokens that were guessed and are checked
// together. Kernels that decode take the rows of a sequence as further heads of one: a tile of 64 or 128 rows
// and heads passes over keys that it, and the tiles beside it in L2, read once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/cost/analytic.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// The token itself and as many guesses as a plan may have. More rows are of prompts, whose kernels are
// others.
inline constexpr std::int64_t kMostCheckedRows = 17;

bool has_checked_rows(const CostQuery& query);

// Kernels of one row a sequence, which tables have, that tell of one with several.
class CheckedRows {
 public:
  explicit CheckedRows(const CostQuery& query);

  CostQuery as_heads() const;   // as many sequences with so many times the heads: equal reads, equal products
  CostQuery of_one() const;     // the first row of each alone: all that is read
  CostQuery apart() const;      // each row a sequence of its own: as many products, more reads
  CostQuery as_prompt() const;  // the last rows of prompts: tiles of rows over keys that are read once

 private:
  CostQuery asked_, one_row_;
  std::int32_t rows_;
  std::vector<std::int32_t> keys_;  // of each row, where sequences differ
};

// What the rows take as heads, but no longer than apart or as rows of prompts, and no less than one of them:
// what a table has of more heads is held between measured kernels that do no more and no less. Of more heads
// than tables reach to, what they tell of rows apart, by what the model says of both. Nothing where no table
// tells of rows apart: the model knows rows of a sequence itself. Prompts of latent attention are another
// product, and tell nothing.
std::optional<Cost> checked_rows_cost(const CostSource& source, const AnalyticModel& model,
                                      const CostQuery& query);

}  // namespace moebius
