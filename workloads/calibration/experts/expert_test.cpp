#include "workloads/calibration/experts/expert_test.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "workloads/calibration/experts/expert_parts.h"
#include "workloads/calibration/held_out.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/table.h"

namespace moebius {
namespace {

// The sum over the row's kernels, mean of its routings.
class Teller {
 public:
  Teller(const std::vector<ProfileTable>& tables, const Accelerator& reference)
      : model_(reference), tables_(one_profile(tables, reference)), like_(tables.front()) {}

  double microseconds(const ExpertRow& row) const {
    double sum = 0;
    for (const auto& load : *row.routings)
      for (const CostQuery& query : expert_kernels(row.layer, row.tokens, load, like_.cores))
        sum += seconds(query);
    return sum * 1e6 / static_cast<double>(row.routings->size());
  }

 private:
  static std::vector<Profile> one_profile(const std::vector<ProfileTable>& tables,
                                          const Accelerator& reference) {
    Profile profile;
    profile.accelerator = reference.id;
    profile.reference = reference;
    profile.tables = tables;
    return {profile};
  }

  // Under the clocks of the measurement.
  double seconds(const CostQuery& query) const {
    const auto told = [&](Clocks clocks) {
      const auto cost = tables_.cost(model_, query, clocks);
      return cost ? cost->seconds : model_.estimate(query, clocks).seconds;
    };
    const double first = told(clocks_of(like_, 0));
    const Clocks clocks = clocks_of(like_, first * 1e6);
    return clocks == clocks_of(like_, 0) ? first : told(clocks);
  }

  AnalyticModel model_;
  MeasuredTables tables_;
  const ProfileTable& like_;
};

}  // namespace

namespace {

// The errors of one table's rows, by distribution.
class Errors {
 public:
  void add(const ExpertRow& row, double error) {
    if (!row.wide) all_.push_back(error);
    by_distribution_[(row.wide ? "wide, " : "") + row.distribution].push_back(error);
  }

  HeldOut held_out() const {
    HeldOut held_out = held_out_of(all_);
    for (const auto& [distribution, errors] : by_distribution_) {
      const HeldOut part = held_out_of(errors);
      held_out.parts.push_back({distribution, part.rows, part.median, part.p90});
    }
    return held_out;
  }

 private:
  std::vector<double> all_;
  std::map<std::string, std::vector<double>> by_distribution_;
};

}  // namespace

void test_experts(std::vector<ProfileTable>& tables, const std::vector<ExpertRow>& rows,
                  const Accelerator& reference) {
  const Teller teller(tables, reference);
  Errors all, narrow;
  for (const ExpertRow& row : rows) {
    if (!row.kept_out) continue;
    const double error = teller.microseconds(row) / row.microseconds - 1;
    all.add(row, error);
    if (static_cast<double>(row.layer.width) < kWideReduction) narrow.add(row, error);
  }
  for (ProfileTable& table : tables)
    table.held_out = (table.where.front().high < kWideReduction ? narrow : all).held_out();
}

}  // namespace moebius
