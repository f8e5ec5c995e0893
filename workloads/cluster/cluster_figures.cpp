#include "workloads/cluster/cluster_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/cluster/cluster_rates.h"
#include "workloads/crew.h"

namespace moebius {

namespace {

template <class Of>
RunSpread over(const std::vector<ClusterCourse>& courses, Of of) {
  return spread_of_courses(courses, of);
}

Time time_of(const JobCourse& course) {
  return std::accumulate(course.items.begin(), course.items.end(), Time{},
                         [](Time sum, Time item) { return sum + item; });
}

Time since_start(const JobCourse& course) {
  return time_of(course) - course.of(TimeItem::kQueued);
}

// What all nodes draw over the plan's time, at the building's meter. A node with a job that computes draws
// its busy share, any other its idle share.
double energy_of(const ClusterPlan& plan, const ClusterCourse& course) {
  const double devices_w = plan.node_power.value - plan.overhead_power.value;
  double busy_node_s = 0;
  for (std::size_t i = 0; i < course.jobs.size(); ++i) {
    const JobCourse& job = course.jobs[i];
    const Time computing =
        job.of(TimeItem::kProductive) + job.of(TimeItem::kRecomputed) + job.of(TimeItem::kSlowed);
    busy_node_s += plan.jobs[i].nodes * computing.seconds();
  }
  const double all_node_s = plan.nodes * plan.duration.seconds();
  const double base_w = plan.overhead_power.value + plan.power.idle * devices_w - plan.cooling.saved.value;
  return plan.power.pue *
         (all_node_s * base_w + busy_node_s * (plan.power.busy - plan.power.idle) * devices_w);
}

double tokens_of(const ClusterPlan& plan, const ClusterCourse& course) {
  double tokens = 0;
  for (std::size_t i = 0; i < course.jobs.size(); ++i)
    tokens += plan.jobs[i].tokens_per_s * course.jobs[i].of(TimeItem::kProductive).seconds();
  return tokens;
}

double effective_of(const ClusterPlan& plan, const ClusterCourse& course) {
  double productive = 0, all = 0;
  for (std::size_t i = 0; i < course.jobs.size(); ++i) {
    productive += plan.jobs[i].nodes * course.jobs[i].of(TimeItem::kProductive).seconds();
    all += plan.jobs[i].nodes * since_start(course.jobs[i]).seconds();
  }
  return all > 0 ? productive / all : 0;
}

ClusterJobFigures job_figures(const ClusterPlan& plan, std::size_t index,
                              const std::vector<ClusterCourse>& courses) {
  const ClusterJob& job = plan.jobs[index];
  const auto of_job = [&](auto of) {
    return over(courses, [&](const ClusterCourse& course) { return of(course.jobs[index]); });
  };
  ClusterJobFigures figures;
  figures.name = job.name;
  figures.nodes = job.nodes;
  figures.effective = of_job([](const JobCourse& course) -> std::optional<double> {
    if (since_start(course).ns == 0) return std::nullopt;
    return share(course.of(TimeItem::kProductive), since_start(course));
  });
  figures.interruptions = of_job([](const JobCourse& course) { return static_cast<double>(course.total()); });
  for (int item = 0; item < kNumTimeItems; ++item)
    figures.items.push_back(
        of_job([&](const JobCourse& course) { return course.of(static_cast<TimeItem>(item)).seconds(); }));
  for (std::size_t kind = 0; kind < plan.faults.size(); ++kind)
    figures.kinds.push_back(
        of_job([&](const JobCourse& course) { return static_cast<double>(course.interruptions[kind]); }));
  figures.mtbf_h = of_job([](const JobCourse& course) -> std::optional<double> {
    if (course.total() == 0) return std::nullopt;
    return since_start(course).seconds() / 3600 / course.total();
  });
  figures.end_s = of_job([&](const JobCourse& course) -> std::optional<double> {
    if (job.arrival >= plan.duration) return std::nullopt;
    return course.end.seconds();
  });
  figures.done = of_job([](const JobCourse& course) { return course.done ? 1.0 : 0.0; }).mean;
  figures.has_work = job.work.ns > 0;
  const CheckpointCosts costs =
      checkpoint_costs(plan.checkpoint, job.state, std::int64_t{job.nodes} * plan.devices_per_node);
  if (const auto interval = checkpoint_interval(plan, job, costs))
    figures.checkpoint_interval_s = interval->seconds();
  if (const auto apart = faults_apart(plan, job.nodes)) {
    figures.young_interval_s = young_interval(costs.stall, *apart).seconds();
    figures.daly_interval_s = daly_interval(costs.stall, *apart).seconds();
  }
  figures.checkpoint_stall_s = costs.stall.seconds();
  figures.saves = plan.checkpoint.policy != CheckpointPolicy::kNone;
  return figures;
}

}  // namespace

RunSpread spread_over(std::vector<double> values) {
  if (values.empty()) return {.known = false};
  std::sort(values.begin(), values.end());
  const auto at = [&](double of) {
    return values[static_cast<std::size_t>(std::lround(of * static_cast<double>(values.size() - 1)))];
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), at(0.05), at(0.95)};
}

ClusterFigures cluster_figures(const ClusterPlan& plan, std::uint64_t seed) {
  std::vector<ClusterCourse> courses(plan.runs);
  work_side_by_side(courses.size(), [&](std::size_t run) {
    courses[run] = run_cluster(plan, RandomStream::finalise(seed) + run);
  });
  ClusterFigures figures;
  figures.runs = plan.runs;
  figures.nodes = plan.nodes;
  figures.devices = plan.nodes * plan.devices_per_node;
  figures.spares = plan.spares;
  figures.duration_s = plan.duration.seconds();
  for (const FailureKind& kind : plan.faults) figures.kinds.push_back(kind.name);
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) figures.jobs.push_back(job_figures(plan, i, courses));
  figures.effective = over(courses, [&](const ClusterCourse& course) { return effective_of(plan, course); });
  figures.interruptions = over(courses, [](const ClusterCourse& course) {
    double sum = 0;
    for (const JobCourse& job : course.jobs) sum += job.total();
    return sum;
  });
  const double whole = plan.nodes * plan.duration.seconds();
  figures.allocation = over(courses, [&](const ClusterCourse& course) { return course.busy_node_s / whole; });
  figures.down = over(courses, [&](const ClusterCourse& course) { return course.down_node_s / whole; });
  figures.least_free =
      over(courses, [](const ClusterCourse& course) { return static_cast<double>(course.least_free); });
  figures.energy_j = over(courses, [&](const ClusterCourse& course) { return energy_of(plan, course); });
  figures.tokens = over(courses, [&](const ClusterCourse& course) { return tokens_of(plan, course); });
  const double cost = plan.nodes * plan.duration.seconds() / 3600 * plan.node_price.value;
  figures.cost_usd = {cost, cost, cost};
  return figures;
}

}  // namespace moebius
