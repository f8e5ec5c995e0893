// Machines of one scenario: pools of equal nodes joined by a fabric. Devices are numbered pool by pool, node
// by node.
#pragma once

#include <string>
#include <vector>

#include "hw/accelerator.h"
#include "hw/fabric.h"
#include "hw/node.h"
#include "hw/reader.h"

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

// A pool as the fabric sees it. Rates are what large transfers achieve: the scale-up link (over PCIe, the
// host link) times link_efficiency, the NIC times transport_efficiency. The NIC is the fabric's where the
// scenario states one, else the accelerator's own. The pool must fit together: see problem_of(Pool).
FabricPool part_of_fabric(const Pool& pool, const FabricSpec& spec);

// Why an accelerator cannot stand in such a node, as a sentence; empty when it can.
std::string problem_of(const Pool& pool);

// The cluster, or the error at `place` that says what does not fit: a pool in itself, two pools of one name,
// a fabric that cannot join so many nodes.
Cluster build_cluster(std::vector<Pool> pools, FabricSpec spec, const Place& place);

}  // namespace moebius
