// Which of the free devices a job takes, and in which order its ranks are laid over them: near ones one after
// the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/fabric/fabric.h"

namespace moebius {

struct DeviceOrder {
  std::string how;
  std::vector<std::int32_t> devices;  // as many as there are ranks
};

// The first ones; the ones that stand in the fewest regions, pods, leaves and nodes (of the places that hold
// all that is wanted the smallest, else the largest and then what is left); the same of whole runs of `unit`
// devices of a node, for units that several ranks share (8, tensor-parallel degree). Different ones only, the
// first ones first. `free` ascends and holds at least as many.
std::vector<DeviceOrder> device_orders(const Fabric& fabric, const std::vector<std::int32_t>& free, int ranks,
                                       const std::vector<int>& units);

}  // namespace moebius
