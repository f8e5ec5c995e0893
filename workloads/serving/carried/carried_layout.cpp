#include "workloads/serving/carried/carried_layout.h"

#include <numeric>

#include "workloads/serving/lower.h"
#include "workloads/serving/separation/separated_layout.h"

namespace moebius {
namespace {

// An instance's own layout behind those that are there.
void append(Layout& all, const Layout& instance, int first_device) {
  const auto ranks = all.ranks, classes = static_cast<std::int32_t>(all.classes.size());
  for (RankClass of : instance.classes) {
    for (std::int32_t& rank : of.ranks) rank += ranks;
    for (Group& group : of.groups)
      for (std::int32_t& rank : group.ranks) rank += ranks;
    all.classes.push_back(std::move(of));
  }
  for (const std::int32_t of : instance.class_of_rank) all.class_of_rank.push_back(classes + of);
  for (const std::int32_t device : instance.device_of_rank)
    all.device_of_rank.push_back(first_device + device);
  all.ranks += instance.ranks;
}

void add_world(Layout& layout) {
  for (RankClass& of : layout.classes) {
    Group& world = of.groups[static_cast<int>(GroupRole::kWorld)];
    world.ranks.resize(layout.ranks);
    std::iota(world.ranks.begin(), world.ranks.end(), 0);
    world.my_index = of.representative();
    world.num_classes = static_cast<std::int32_t>(layout.classes.size());
  }
}

}  // namespace

CarriedLayout carried_layout(const CarriedService& service) {
  CarriedLayout all;
  for (std::size_t p = 0; p < service.pools.size(); ++p) {
    const CarriedPool& pool = service.pools[p];
    const ServingJob job = job_of_pool(service, pool);
    const Layout one =
        pool.plan.experts_apart() ? separated_layout(pool.plan) : make_layout(ServingShape(job).plan);
    for (int i = 0; i < pool.rules.instances; ++i) {
      all.instances.push_back(
          {static_cast<int>(p), all.layout.ranks, static_cast<int>(all.layout.classes.size())});
      append(all.layout, one, pool.first_device + i * one.ranks);
    }
  }
  if (service.several()) add_world(all.layout);
  return all;
}

}  // namespace moebius
