// What courses of a cluster come to: figures that no course has are not there.
#include "workloads/cluster/cluster_figures.h"

#include <cmath>

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

// A formula that takes all of the time for that between faults would say 600 s x 100 h: 3.04 h.
TEST_CASE("where nothing fails no interval between checkpoints is the best") {
  ClusterPlan plan = one_after_the_other();
  const ClusterFigures given = cluster_figures(plan, 1);
  CHECK(given.jobs[0].checkpoint_interval_s == 3600.0);
  CHECK_FALSE(given.jobs[0].young_interval_s);
  CHECK_FALSE(given.jobs[0].daly_interval_s);
  CHECK_THAT(cluster_text(given), Catch::Contains("best by Young none, by Daly none"));
  plan.checkpoint = {.policy = CheckpointPolicy::kSync, .choice = IntervalChoice::kYoung};
  plan.checkpoint.storage = {1e9};
  for (ClusterJob& job : plan.jobs) job.state = {600e9};
  const ClusterFigures none = cluster_figures(plan, 1);
  CHECK_FALSE(none.jobs[0].checkpoint_interval_s);
  CHECK(none.jobs[0].items[static_cast<int>(TimeItem::kCheckpoint)].mean == 0);
  CHECK_THAT(cluster_text(none), Catch::Contains("checkpoints        none, as nothing fails"));
  // Faults at stated times say how far apart they are: one in 100 h.
  plan.trace = {{.time = kHour * 15, .node = 0, .kind = 0}};
  const ClusterFigures traced = cluster_figures(plan, 1);
  CHECK(*traced.jobs[0].young_interval_s == Approx(std::sqrt(2 * 600.0 * 360'000)));
}

TEST_CASE("what nodes without a price cost is not told") {
  ClusterPlan plan = one_after_the_other();
  plan.jobs[0].tokens_per_s = 1000;
  const auto prices = [](const ClusterFigures& figures) {
    const FigureTree tree = cluster_tree(figures);
    const auto is_price = [](const auto& of) { return of.first.find("usd") != std::string::npos; };
    return std::count_if(tree.parts.begin(), tree.parts.end(), is_price) +
           std::count_if(tree.rows.begin(), tree.rows.end(), is_price);
  };
  const ClusterFigures none = cluster_figures(plan, 1);
  CHECK(prices(none) == 0);
  CHECK_THAT(cluster_text(none), !Catch::Contains("USD"));
  plan.node_price = {16};
  const ClusterFigures priced = cluster_figures(plan, 1);
  CHECK(prices(priced) == 2);
  CHECK_THAT(cluster_text(priced), Catch::Contains("USD a million"));
}

TEST_CASE("who arrives after the end has neither an end nor effective time") {
  ClusterPlan plan = one_after_the_other();
  plan.jobs[1].arrival = kHour * 200;
  const ClusterFigures figures = cluster_figures(plan, 1);
  CHECK(figures.jobs[0].end_s.mean == Approx(36'000).epsilon(0.01));
  CHECK(figures.jobs[0].done == 1);
  CHECK_FALSE(figures.jobs[1].end_s.known);
  CHECK_FALSE(figures.jobs[1].effective.known);
  const std::string text = cluster_text(figures);
  CHECK_THAT(text, Catch::Contains("of its time since it started"));
  CHECK_THAT(text,
             Catch::Contains("  end                at 10 h (10 h to 10 h), done in 100% of the courses"));
  CHECK_THAT(text, Catch::Contains("b on 1 nodes: never started"));
}

}  // namespace
}  // namespace moebius
