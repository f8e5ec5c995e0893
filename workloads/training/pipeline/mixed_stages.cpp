#include "workloads/training/pipeline/mixed_stages.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/mixed_pools.h"

namespace moebius {
namespace {

// The pools that the devices [begin, end) stand in.
std::vector<const Pool*> pools_of(const Cluster& cluster, int begin, int end) {
  std::vector<const Pool*> pools;
  int first = 0;
  for (const Pool& pool : cluster.pools) {
    if (first < end && begin < first + pool.devices()) pools.push_back(&pool);
    first += pool.devices();
  }
  return pools;
}

// Devices at which another vendor's begin.
std::vector<int> vendor_borders(const Cluster& cluster, int ranks) {
  std::vector<int> borders;
  int first = 0;
  for (std::size_t i = 0; i < cluster.pools.size(); first += cluster.pools[i++].devices()) {
    const bool other =
        i > 0 && cluster.pools[i].accelerator.vendor != cluster.pools[i - 1].accelerator.vendor;
    if (other && first < ranks) borders.push_back(first);
  }
  return borders;
}

}  // namespace

bool stages_are_mixed(const Cluster& cluster, const TrainingPlan& plan) {
  const int size = plan.ranks() / plan.pp;
  for (int stage = 0; stage < plan.pp; ++stage) {
    const auto pools = pools_of(cluster, stage * size, (stage + 1) * size);
    for (const Pool* pool : pools) {
      if (!alike(*pool, *pools.front())) return true;
    }
  }
  return false;
}

std::vector<double> stage_speeds(const Cluster& cluster, const TrainingPlan& plan,
                                 const std::function<double(const Pool&)>& rate) {
  if (!several_kinds(cluster)) return {};
  std::vector<double> speeds;
  const int size = plan.ranks() / plan.pp;
  for (int stage = 0; stage < plan.pp; ++stage) {
    double slowest = 0;
    for (const Pool* pool : pools_of(cluster, stage * size, (stage + 1) * size)) {
      const double speed = rate(*pool);
      slowest = slowest > 0 ? std::min(slowest, speed) : speed;
    }
    speeds.push_back(slowest);
  }
  return speeds;
}

std::vector<std::string> groups_across_vendors(const Cluster& cluster, const TrainingPlan& plan) {
  std::vector<std::string> sentences;
  const int stage = plan.ranks() / plan.pp;
  const auto look = [&](const char* name, int degree) {
    for (const int border : vendor_borders(cluster, plan.ranks())) {
      if (border % stage % degree == 0) continue;
      sentences.push_back(
          fmt::format("a {} group of {} ranks stands on accelerators of two vendors: choose degrees that "
                      "divide the devices of each pool",
                      name, degree));
      return;
    }
  };
  if (plan.tp > 1) look("tensor-parallel", plan.tp);
  if (plan.cp > 1) look("context-parallel", plan.tp * plan.cp);
  if (plan.expert_ranks() > 1) look("expert-parallel", plan.expert_ranks());
  return sentences;
}

double peak_of_devices(const Cluster& cluster, int ranks) {
  double peak = 0;
  for (const Pool& pool : cluster.pools) {
    const int used = std::min(ranks, pool.devices());
    peak += used * pool.accelerator.peak_of(DType::kBf16).value;
    ranks -= used;
  }
  return peak;
}

void judge_by_class(const Cluster& cluster, const Layout& layout, MemoryReport& report) {
  double most = 0, most_of_host = 0;
  for (std::size_t i = 0; i < report.classes.size(); ++i) {
    for (const std::int32_t rank : layout.classes[i].ranks) {
      const Pool& pool = cluster.pool_of(layout.device_of_rank[rank]);
      const Bytes capacity = pool.accelerator.memory, room = capacity - report.reserve;
      const double share = report.classes[i].peak / std::max(room, Bytes{1});
      if (share > most) {
        most = share;
        report.worst_class = static_cast<int>(i);
        report.capacity = capacity;
      }
      // Of the node's memory what a device has of it.
      const Bytes host = pool.node.host_memory / std::max(1, pool.node.accelerators);
      const double of_host = total(report.classes[i].on_host) / std::max(host, Bytes{1});
      if (of_host > most_of_host) {
        most_of_host = of_host;
        report.worst_on_host = static_cast<int>(i);
        report.host_capacity = host;
      }
    }
  }
}

}  // namespace moebius
