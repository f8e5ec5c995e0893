// Costs that are measured on a device at hand, whatever chip the scenario names: the step is simulated, its
// compute ops are timed.
//
// Every distinct op is measured once. Where routing gives each rank and layer rows of its own there would be
// no end of them, so the number of measurements is bounded: of ops that differ in their routed rows only, the
// first kExactSizes are measured as they are. Later ones are interpolated, linearly in the rows, between
// points of a grid whose neighbours lie 1.25 apart (both are measured, once). A grouped op with uneven rows
// is then the sum over its experts of what an expert with so many rows takes among equal ones: exact for
// devices that compute expert by expert, as the host does and the CUDA executor with BF16; one launch for all
// experts may be a wave of tiles longer or shorter. The stated error is the spread of the measurements and,
// of interpolated ones, the distance to the farther neighbour: what the truth cannot exceed as long as more
// rows never take less time. An update of more than kMostElements elements is measured on so many and told in
// proportion: it streams through all of them, and the device at hand need not hold what the scenario's chip
// does.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "hw/accelerator.h"
#include "workloads/cost/measured_ops.h"

namespace moebius {

inline constexpr int kExactSizes = 4;
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 26;

// The largest point of the grid that is not above `rows`, and the smallest that is not below; rows >= 1.
struct GridCell {
  std::int64_t low = 1, high = 1;
};
GridCell grid_cell(std::int64_t rows);

// How a cost is put together: the sum over terms of count times the time between `low` and `high`.
struct Recipe {
  struct Term {
    OpKey low, high;
    double share = 0;  // of the way from low to high
    double count = 1;
  };
  std::vector<Term> terms;  // one of an op that is measured as it is: low equals high
};

// Decides what is measured. The answer for a query hangs on those before it, never on what a journal holds,
// so that a run that goes on decides as the one that was interrupted.
class Recipes {
 public:
  const Recipe& of(const OpKey& key);

 private:
  std::map<std::string, Recipe> made_;                  // by the key's text
  std::map<std::string, std::set<std::string>> exact_;  // by the text without routed rows
};

class EmulatedCosts : public CostSource {
 public:
  // Cores that an op holds are taken as a share of the accelerator's; a device of one core has no shares.
  // Memory traffic is what the op must move, at most what the accelerator's memory could in that time.
  EmulatedCosts(std::shared_ptr<MeasuredOps> ops, std::shared_ptr<Recipes> recipes, const Accelerator& chip)
      : ops_(std::move(ops)), recipes_(std::move(recipes)), chip_(chip) {}

  Cost cost(const CostQuery& query) const override;
  std::string description() const override;
  // The ops that a query is made of, to be measured ahead.
  std::vector<OpKey> needs(const CostQuery& query) const;

 private:
  OpKey on_device(const CostQuery& query) const;

  std::shared_ptr<MeasuredOps> ops_;
  std::shared_ptr<Recipes> recipes_;
  Accelerator chip_;
};

}  // namespace moebius
