// What an op takes by the kernels that a scenario names.
#pragma once

#include <string>

#include "hw/catalog.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

inline double seconds_on(const std::string& chip_id, const std::string& stacks, CostQuery query) {
  const Accelerator chip = Catalog().accelerator(chip_id);
  query.cores = chip.cores;
  return make_cost_source(chip, "", stacks)->cost(query).seconds;
}

}  // namespace moebius
