// Measured expert layers in terms of the values of a table that is to be fitted. Part of the fit
// (expert_fit.h).
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "workloads/calibration/experts/expert_fit.h"
#include "workloads/cost/analytic.h"

namespace moebius {

inline constexpr double kWideReduction =
    1024;  // of k: absorbed projections stay below, a model's width above
inline bool is_narrow(const Shape& shape) {
  return static_cast<double>(shape.k) < kWideReduction;
}

// The two GEMMs of the experts of a rank; they share their corrections.
struct ExpertPair {
  int experts = 0;
  std::int64_t hidden = 0, width = 0;
  int matrices = 2;
  auto operator<=>(const ExpertPair&) const = default;
  Shape shape(bool up) const;  // without rows
};

struct ExpertPart {
  std::size_t value = 0;    // pair * points + point
  double microseconds = 0;  // of the model there, times the weight
};

class ExpertParts {
 public:
  // `model` and `table` must outlive it. `points`: rows of an expert, ascending.
  ExpertParts(const AnalyticModel& model, const ProfileTable& table,
              const std::vector<const ExpertRow*>& rows, std::vector<double> points);

  const std::vector<ExpertPair>& pairs() const { return pairs_; }
  const std::vector<double>& points() const { return points_; }

  // Of the row's GEMMs: their time is the sum of the parts' times corrections. As a look-up mixes them
  // (table.cpp).
  std::vector<ExpertPart> of(const ExpertRow& row) const;
  // What is left for the GEMMs when the model's passes are taken off; those take at most half of the row.
  double gemm_microseconds(const ExpertRow& row) const;
  // The model at a grid point, under the clocks that its value will be read with.
  double model_at(std::size_t pair, std::size_t point, bool up) const;

  static double rows_of(const std::vector<std::int32_t>& load);  // mean rows of an expert

 private:
  double seconds(const CostQuery& query) const;
  void add_even_parts(const CostQuery& even, std::size_t pair, double share,
                      std::map<std::size_t, double>& parts) const;
  void add_parts(const CostQuery& query, std::size_t pair, double share,
                 std::map<std::size_t, double>& parts) const;

  const AnalyticModel* model_;
  const ProfileTable* table_;
  std::vector<double> points_;
  std::vector<ExpertPair> pairs_;
};

}  // namespace moebius
