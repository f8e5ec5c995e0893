// The table of a search, as people read it.
#include "tests/catch.h"
#include "workloads/study/search/search_result.h"

namespace moebius {
namespace {

RankedPlan plan_of(const std::string& name, double seconds) {
  RankedPlan plan;
  plan.name = name;
  PlanFigures& figures = plan.fine.emplace();
  figures.score = figures.value = seconds;
  figures.parts = {{"compute", seconds}};
  return plan;
}

TEST_CASE("the plans that are explained are those that are shown") {
  SearchResult result;
  result.plans = {plan_of("a", 1), plan_of("b", 2), plan_of("c", 3)};
  const std::string two = to_text(result, 2), all = to_text(result, 10);
  CHECK(two.find("than 2") != std::string::npos);
  CHECK(two.find("than 3") == std::string::npos);
  CHECK(all.find("than 3") != std::string::npos);
}

}  // namespace
}  // namespace moebius
