// Puts a plan together, family by family. Part of make_case_plan() (case_plan.h).
#pragma once

#include <string>
#include <vector>

#include "workloads/calibration/device/case_plan.h"

namespace moebius {

using Numbers = std::vector<double>;

// Every other element, both ends among them where their number is odd.
Numbers half(const Numbers& all);

ProfileTable family_of(OpKind kind, DType dtype, std::vector<ProfileKey> site,
                       const std::vector<ProfileKey>& axes);

class PlanMaker {
 public:
  explicit PlanMaker(double most_elements) : most_elements_(most_elements) {}

  // A family: all sites (one without keys where none is given) at all points of the grid, and between the
  // points of each axis shapes drawn by the family's number.
  void add(ProfileTable table, const std::vector<Numbers>& sites, const std::vector<Numbers>& axes);
  // More tests of the family added last: other sites, or uneven loads of experts.
  void add_tests(const std::string& part, const std::vector<Numbers>& sites,
                 const std::vector<Numbers>& points);
  void add_uneven(int groups, const std::vector<Numbers>& points);

  CasePlan finish() { return std::move(plan_); }

 private:
  const ProfileTable& last() const { return plan_.families.back(); }
  void add_between(const std::vector<Numbers>& sites, const std::vector<Numbers>& axes, std::size_t grid);
  void add_case(DeviceCase one);

  CasePlan plan_;
  double most_elements_ = 0;
};

}  // namespace moebius
