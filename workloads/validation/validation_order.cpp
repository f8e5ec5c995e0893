// Whether what is measured better is predicted better: the order of the cases of a group.
#include "workloads/validation/validation.h"

namespace moebius {
namespace {

// Of each figure that both cases judge.
void compare(const ValidatedCase& a, const ValidatedCase& b, ValidationSummary& summary) {
  for (const ValidatedRow& x : a.rows) {
    for (const ValidatedRow& y : b.rows) {
      if (x.expectation.metric != y.expectation.metric) continue;
      if (!x.judged() || !y.judged() || !x.ours || !y.ours) continue;
      const double published = x.expectation.value - y.expectation.value;
      if (published == 0) continue;
      ++summary.pairs;
      summary.in_order += published * (*x.ours - *y.ours) > 0 ? 1 : 0;
    }
  }
}

}  // namespace

void count_order(ValidationSummary& summary, const std::vector<ValidatedCase>& cases) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].group != summary.group) continue;
    for (std::size_t j = i + 1; j < cases.size(); ++j)
      if (cases[j].group == summary.group) compare(cases[i], cases[j], summary);
  }
}

}  // namespace moebius
