// Machines of one scenario: pools of equal nodes joined by a fabric. Devices are numbered pool by pool, node by node.
#pragma once

#include <string>
#include <vector>

#include "hw/accelerator.h"
#include "hw/fabric.h"
#include "hw/node.h"

namespace moebius {

struct Pool {
  std::string name;
  Accelerator accelerator;
  Node node;
  int nodes = 0;

  int devices() const { return nodes * node.accelerators; }
};

struct Cluster {
  std::vector<Pool> pools;
  Fabric fabric;

  const Pool& pool_of(int device) const;
};

}  // namespace moebius
