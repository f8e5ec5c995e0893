// The ranks of a service that is carried out: instance after instance, each with groups of its own; all of
// them meet in the world group, in which caches travel.
#pragma once

#include <vector>

#include "workloads/schedule/layout.h"
#include "workloads/serving/carried/carried_service.h"

namespace moebius {

struct InstancePlace {
  int pool = 0;
  int first_rank = 0, first_class = 0;
};

struct CarriedLayout {
  Layout layout;
  std::vector<InstancePlace> instances;  // by number among those of all pools
};

CarriedLayout carried_layout(const CarriedService& service);

}  // namespace moebius
