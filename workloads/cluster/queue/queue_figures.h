// What a cluster's queues come to, over several courses with loads and faults of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/cluster/cluster_figures.h"
#include "workloads/cluster/queue/queue_course.h"
#include "workloads/cluster/queue/queue_timeline.h"

namespace moebius {

struct QueueOfCluster {
  std::string name;
  RunSpread held;  // card time, of its quota's; above 1: borrowed
  // From arrival to first start; of jobs that never started to the end of time, as long as that at least, of
  // services that nobody served to their own end.
  RunSpread wait_p50_s, wait_p95_s, wait_max_s;
  // From arrival to end, over the run time as asked for; of jobs that were not done by the end of time as
  // much as that at least, and 1.
  RunSpread slowdown_p50, slowdown_p95;
  RunSpread jobs, started, done, preempted, resized, interrupted;
  RunSpread longest_wait_s;  // at one time, those that wait at the end too
};

struct ShapeOfCluster {
  std::string name;
  std::vector<RunSpread> pools;  // card time, by pool, over that of all its jobs
  RunSpread card_hours, tokens;
  RunSpread cost_usd;  // unknown where some of its cards have no price

  // Nothing where that is not known, or there are none.
  std::optional<double> usd_per_million_tokens() const {
    if (!cost_usd.known || tokens.mean <= 0) return std::nullopt;
    return 1e6 * cost_usd.mean / tokens.mean;
  }
};

struct SimulatedShape {  // what was simulated of a shape alone
  std::string shape, pool;
  int cards = 0;
  ShapeStep step;
};

// A service's tokens with a part of its network.
struct BesideFigures {
  double network = 1, tpot_p99_s = 0, tpot_p50_s = 0, tokens_per_s = 0;
};
struct ServiceBeside {
  std::string shape, neighbour;
  double busy = 0;  // share of the time in which the neighbour's network is
  BesideFigures alone, one_queue, own_queue;
};

struct QueueFigures {
  std::int64_t runs = 0, events = 0;
  std::int64_t cards = 0;
  double duration_s = 0;
  RunSpread allocation;          // card time that jobs hold, over that of cards that are not broken
  RunSpread attainable;          // of the same, at most (queue_bound.h)
  RunSpread utilisation;         // ... in which what is done stays: useful and served
  RunSpread offered;             // card time that was asked for, over all
  std::vector<RunSpread> items;  // share of all card time, by CardItem
  std::vector<std::string> pool_names;
  std::vector<std::vector<RunSpread>> pools;  // the same of each pool
  std::vector<QueueOfCluster> queues;
  std::vector<ShapeOfCluster> shapes;
  std::vector<SimulatedShape> simulated;
  std::vector<ServiceBeside> beside;
  RunSpread jobs, started, done;
  RunSpread borrowed;                       // card time beyond quotas, over all
  RunSpread missing_replicas;               // of the card time that services asked for
  RunSpread beyond_quota, kept_from_owner;  // times
  RunSpread conservation;                   // card nanoseconds that are in no item; always 0
  RunSpread interruptions;
  RunSpread energy_j, peak_w, over_cap_s, throttled_s;
  RunSpread cost_usd;  // 0 when a price is not known
  RunSpread tokens;
  QueueTimeline course;       // the first of them, where it is wanted
  double longest_beside = 1;  // times that traffic between nodes took beside other jobs on a leaf's uplinks
};

// Courses by seeds that follow from `seed`, side by side.
QueueFigures queue_figures(const QueueInputs& inputs, std::uint64_t seed);
// The seed of the first of them; its load and its faults.
std::uint64_t first_seed(std::uint64_t seed);

}  // namespace moebius
