// Everything that is fixed before time begins: cards, quotas, jobs, costs, the order of pools, the rates of
// faults.
#include <algorithm>
#include <cmath>

#include "hw/error.h"
#include "workloads/cluster/cluster_rates.h"
#include "workloads/cluster/queue/queue_run.h"

namespace moebius {

QueueRun::QueueRun(const QueueInputs& inputs, std::uint64_t load_seed, std::uint64_t fault_seed,
                   const QueueListeners& listeners)
    : in_(inputs),
      listeners_(listeners),
      random_(RandomStream::finalise(fault_seed)),
      jobs_(inputs.jobs.empty() ? draw_load(inputs.plan, inputs.cluster.duration, load_seed) : inputs.jobs) {
  const QueuePlan& plan = in_.plan;
  for (const CardPool& pool : plan.pools) maps_.emplace_back(pool, plan.scheduler.placement);
  holders_.resize(maps_.size());
  for (const JobQueue& queue : plan.queues) {
    for (const CardPool& pool : plan.pools) quota_.push_back(pool.quota(queue));
  }
  used_.assign(quota_.size(), 0);
  order_pools();
  set_costs();
  add_runs();
  set_rates();
  there_.assign(jobs_.size(), 0);
  demand_.resize(jobs_.size());
  course_.pools.resize(plan.pools.size());
  course_.queues.resize(plan.queues.size());
  course_.asked_of_services.assign(in_.cluster.duration.ns / kHour.ns + 1, 0);
  course_.faults.assign(in_.cluster.faults.size(), 0);
  reserved_.resize(plan.pools.size() * (plan.queues.size() + 1));
  promised_.resize(plan.pools.size());
  free_item_.assign(plan.pools.size(), CardItem::kIdle);
}

// Of checkpoints, by shape, pool and size.
void QueueRun::set_costs() {
  const QueuePlan& plan = in_.plan;
  int nodes = 0;
  for (const CardPool& pool : plan.pools) nodes += pool.nodes;
  for (int s = 0; s < static_cast<int>(plan.shapes.size()); ++s) {
    const JobShape& shape = plan.shapes[s];
    cost_first_.push_back(static_cast<int>(costs_.size()));
    for (int p = 0; p < static_cast<int>(plan.pools.size()); ++p) {
      for (int size = 0; size < static_cast<int>(shape.sizes.size()); ++size) {
        ClusterPlan of = in_.cluster;
        of.devices_per_node = plan.pools[p].cards;
        of.nodes = nodes;
        ClusterJob job;
        job.nodes = std::max(1, shape.sizes[size] / of.devices_per_node);
        if (shape.kind != JobClass::kInference)
          job.step = time_from_seconds(in_.steps.at(s, p, size).seconds);
        const CheckpointCosts costs = checkpoint_costs(of.checkpoint, shape.state, shape.sizes[size]);
        costs_.push_back({costs, interval_or_never(of, job, costs)});
      }
    }
  }
}

// A run a job, and one for every replica that a service may want: where chips are slower it takes more of
// them than were drawn.
void QueueRun::add_runs() {
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const DrawnJob& job = jobs_[j];
    const JobShape& shape = in_.plan.shapes[job.shape];
    const int reference = in_.steps.reference(shape, job.shape, job.size);
    CHECK(reference >= 0, "a pool on which the shape runs");
    first_run_.push_back(static_cast<int>(runs_.size()));
    QueuedRun run{.job = static_cast<int>(j), .shape = job.shape, .queue = shape.queue};
    run.service = shape.kind == JobClass::kInference;
    run.asked = job.size;
    run.work = job.work;
    run.estimate = job.estimate;
    run.reference = in_.steps.at(job.shape, reference, job.size).seconds;
    double slowest = run.reference;
    for (const int pool : shape.pools)
      slowest = std::max(slowest, in_.steps.at(job.shape, pool, job.size).seconds);
    const int replicas =
        run.service ? static_cast<int>(std::ceil(job.replicas * slowest / run.reference)) : 1;
    for (run.replica = 0; run.replica < replicas; ++run.replica) runs_.push_back(run);
    course_.jobs.push_back({.job = job, .ideal = job.work});
    course_.jobs.back().by_pool.assign(in_.plan.pools.size(), 0);
  }
  for (QueuedRun& run : runs_) {
    if (run.service) continue;
    const Costs& costs = costs_of(run.shape, shape_of(run).pools[0], run.asked);
    run.progress.emplace(in_.cluster.checkpoint, costs.checkpoint, costs.interval);
  }
}

// Of faults, by pool and kind. Jobs' own software counts as if all ran at once; a fault of one that does not
// run is none.
void QueueRun::set_rates() {
  const auto add = [&](const ClusterPlan& of, bool by_job) {
    for (const FailureKind& kind : of.faults)
      total_rate_ += rates_.emplace_back((kind.unit == FailureUnit::kJob) == by_job ? rate_of(of, kind) : 0);
  };
  ClusterPlan of = in_.cluster;
  of.jobs.clear();
  for (const CardPool& pool : in_.plan.pools) {
    of.nodes = pool.nodes;
    of.devices_per_node = pool.cards;
    add(of, false);
  }
  of.jobs.resize(jobs_.size());
  add(of, true);
}

// Pools on which each shape runs, by the rule for chips.
void QueueRun::order_pools() {
  const QueuePlan& plan = in_.plan;
  const bool priced = std::all_of(plan.pools.begin(), plan.pools.end(),
                                  [](const CardPool& pool) { return pool.card_price.value > 0; });
  for (std::size_t s = 0; s < plan.shapes.size(); ++s) {
    const JobShape& shape = plan.shapes[s];
    size_first_.push_back(static_cast<int>(pool_order_.size()));
    for (std::size_t size = 0; size < shape.sizes.size(); ++size) {
      const auto seconds = [&](int pool) {
        return in_.steps.at(static_cast<int>(s), pool, static_cast<int>(size)).seconds;
      };
      const auto price = [&](int p) {
        const CardPool& pool = plan.pools[p];
        return priced ? pool.card_price.value : pool.node_power.value / pool.cards;
      };
      std::vector<int> pools;
      for (const int pool : shape.pools)
        if (seconds(pool) > 0) pools.push_back(pool);
      std::stable_sort(pools.begin(), pools.end(), [&](int a, int b) {
        switch (plan.scheduler.chips) {
          case ChipRule::kFirst:
            return false;
          case ChipRule::kFastest:
            return seconds(a) < seconds(b);
          case ChipRule::kCheapest:
            return price(a) * seconds(a) < price(b) * seconds(b);
        }
        return false;
      });
      pool_order_.push_back(std::move(pools));
    }
  }
}

const QueueRun::Costs& QueueRun::costs_of(int shape, int pool, int size) const {
  const auto sizes = static_cast<int>(in_.plan.shapes[shape].sizes.size());
  return costs_[cost_first_[shape] + pool * sizes + size];
}

}  // namespace moebius
