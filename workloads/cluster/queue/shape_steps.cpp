#include "workloads/cluster/queue/shape_steps.h"

namespace moebius {

ShapeSteps::ShapeSteps(const QueuePlan& plan) {
  int count = 0;
  for (const JobShape& shape : plan.shapes) {
    first_.push_back(count);
    sizes_.push_back(static_cast<int>(shape.sizes.size()));
    count += sizes_.back() * static_cast<int>(plan.pools.size());
  }
  all_.resize(count);
}

int ShapeSteps::reference(const JobShape& of, int shape, int size) const {
  for (const int pool : of.pools) {
    if (runs(shape, pool, size)) return pool;
  }
  return -1;
}

}  // namespace moebius
