// What courses of a cluster come to: figures that no course has are not there.
#include "workloads/cluster/cluster_figures.h"

#include "hw/error.h"
#include "tests/catch.h"
#include "workloads/report/report_cluster.h"

namespace moebius {
namespace {

// One node, two jobs of 10 hours, one after the other, in 100 hours.
ClusterPlan one_after_the_other() {
  ClusterPlan plan;
  plan.duration = kHour * 100;
  plan.nodes = 1;
  plan.checkpoint = {.policy = CheckpointPolicy::kAsync, .choice = IntervalChoice::kGiven, .interval = kHour};
  plan.faults = {{.name = "software", .nodes = 0}};
  for (const char* name : {"a", "b"}) plan.jobs.push_back({.name = name, .nodes = 1, .work = kHour * 10});
  return plan;
}

// The second waits for 10 hours and has its one fault in the 10 hours and a little that follow.
TEST_CASE("the time between interruptions is of the time since the start") {
  ClusterPlan plan = one_after_the_other();
  plan.trace = {{.time = kHour * 15, .node = 0, .kind = 0}};
  const ClusterFigures figures = cluster_figures(plan, 1);
  CHECK(figures.jobs[1].mtbf_h.known);
  CHECK(figures.jobs[1].mtbf_h.mean == Approx(10).epsilon(0.1));
  CHECK_FALSE(figures.jobs[0].mtbf_h.known);
  CHECK_THAT(cluster_text(figures), Catch::Contains("interruptions      none"));
  const FigureTree none = spread_tree(figures.jobs[0].mtbf_h);
  CHECK(std::holds_alternative<std::nullptr_t>(none.rows[0].second));
}

TEST_CASE("who saves nothing has no interval between checkpoints") {
  ClusterPlan plan = one_after_the_other();
  CHECK_THAT(cluster_text(cluster_figures(plan, 1)), Catch::Contains("best by Young"));
  plan.checkpoint.policy = CheckpointPolicy::kNone;
  CHECK_THAT(cluster_text(cluster_figures(plan, 1)), !Catch::Contains("best by Young"));
}

}  // namespace
}  // namespace moebius
