// The course of a search, whatever its plans are.
#include "workloads/study/search/search_course.h"

#include "tests/catch.h"

namespace moebius {
namespace {

RankedPlan searched_plan(const std::string& name, double seconds) {
  RankedPlan plan;
  plan.name = name;
  plan.rough.score = plan.rough.value = seconds;
  return plan;
}

// Two plans of 2 s; the user ends the search after the first one.
SearchResult searched(double given, bool ended) {
  bool over = false;
  SearchRequest request;
  request.top = 10;
  request.stopped = [&] { return over; };
  SearchResult result;
  result.given = searched_plan("as given", given);
  result.counts.legal = 2;
  SearchCourse course(request, result);
  course.open().push({.bundle = 0});
  course.look_for_best([&](const SearchEntry& entry) {
    SearchNext next;
    if (entry.bundle == 0) next.entries.push_back({.bundle = 1});
    next.found.push_back(searched_plan("found", 2));
    next.ran = 1;
    over = ended;
    return next;
  });
  course.count();
  return result;
}

TEST_CASE("a search that is ended has nothing first that is worse than the plan as given") {
  CHECK(searched(1, true).plans.front().name == "as given");
  CHECK(searched(1, true).plans.size() == 2);
  CHECK(searched(3, true).plans.front().name == "found");
  CHECK(searched(1, false).plans.front().name == "found");  // of the plans of the space the best
}

}  // namespace
}  // namespace moebius
