// A small cluster with two queues, on which tests put jobs of their own.
#pragma once

#include <vector>

#include "workloads/cluster/queue/queue_course.h"

namespace moebius {

inline constexpr Time kMinute{60'000'000'000};

// Two queues with half of 16 nodes of 8 cards each; steps of 1 s whatever the chip, twice as fast on twice
// the cards. Starting takes a minute, saving for good 10 s: 100 GB at 10 GB/s.
struct QueueSetting {
  ClusterPlan cluster;
  QueuePlan plan;
  ShapeSteps steps;
  std::vector<DrawnJob> jobs;

  QueueSetting() {
    cluster.duration = kHour * 100;
    cluster.recovery.restart.mean = kMinute;
    cluster.checkpoint = {
        .policy = CheckpointPolicy::kSync, .choice = IntervalChoice::kGiven, .interval = kHour * 1000};
    cluster.checkpoint.storage = {10e9};
    cluster.checkpoint.host_copy = cluster.checkpoint.peer_copy = {1e9};
    cluster.faults = {{.name = "gpu", .repair = {kHour * 10, 0}}};
    plan.pools = {{.name = "a", .nodes = 16, .nodes_per_leaf = 4}};
    plan.queues = {{.name = "first", .quota = 0.5}, {.name = "second", .quota = 0.5}};
    plan.scheduler.elastic = false;
    add_shape(0, {32, 64, 128});
    add_shape(1, {32, 64, 128});
  }
  void add_shape(int queue, std::vector<int> sizes) {
    JobShape shape;
    shape.name = "shape";
    shape.queue = queue;
    shape.weights.assign(sizes.size(), 1);
    shape.sizes = std::move(sizes);
    shape.pools = {0};
    shape.state = {100e9};
    plan.shapes.push_back(shape);
    steps = ShapeSteps(plan);
    for (std::size_t s = 0; s < plan.shapes.size(); ++s) {
      for (std::size_t i = 0; i < plan.shapes[s].sizes.size(); ++i)
        steps.at(static_cast<int>(s), 0, static_cast<int>(i)).seconds = 64.0 / plan.shapes[s].sizes[i];
    }
  }
  void add(int shape, int size, Time arrival, Time work) {
    DrawnJob job;
    job.shape = shape;
    job.size = size;
    job.arrival = arrival;
    job.work = job.estimate = work;
    jobs.push_back(job);
  }
  QueueCourse run(std::uint64_t seed = 1, const QueueListeners& listeners = {}) const {
    return run_queues({.cluster = cluster, .plan = plan, .steps = steps, .jobs = jobs}, seed, seed,
                      listeners);
  }
};

inline CardTime whole(const QueueSetting& setting, std::size_t pool = 0) {
  return CardTime{setting.plan.pools[pool].all_cards()} * setting.cluster.duration.ns;
}

// A month's load in two pools, with everything switched on.
inline QueueSetting busy(std::uint64_t runs_of_faults) {
  QueueSetting setting;
  setting.cluster.duration = kHour * 24 * 10;
  setting.cluster.checkpoint.interval = kMinute * 30;
  setting.cluster.faults[0].per_hour = static_cast<double>(runs_of_faults) / 1000;
  setting.cluster.faults.push_back({.name = "slow", .per_hour = 0.001, .effect = FailureEffect::kSlow});
  setting.cluster.faults.push_back({.name = "silent", .per_hour = 0.001, .effect = FailureEffect::kSilent});
  setting.plan.pools.push_back({.name = "b", .nodes = 8, .nodes_per_leaf = 4, .spares = 1});
  setting.plan.scheduler.elastic = true;
  setting.plan.shapes.clear();
  setting.add_shape(0, {4, 8, 32, 64});
  setting.add_shape(1, {32, 64, 128});
  setting.add_shape(1, {2});
  setting.plan.shapes[2].kind = JobClass::kInference;
  setting.plan.shapes[2].preemptible = false;
  for (JobShape& shape : setting.plan.shapes) shape.pools = {0, 1};
  for (JobShape& shape : setting.plan.shapes) shape.elastic = shape.kind != JobClass::kInference;
  setting.steps = ShapeSteps(setting.plan);
  for (int s = 0; s < 3; ++s) {
    for (int p = 0; p < 2; ++p) {
      for (std::size_t i = 0; i < setting.plan.shapes[s].sizes.size(); ++i)
        setting.steps.at(s, p, static_cast<int>(i)).seconds =
            (1 + p) * 64.0 / setting.plan.shapes[s].sizes[i];
    }
  }
  setting.plan.load.jobs = 60;
  return setting;
}

}  // namespace moebius
