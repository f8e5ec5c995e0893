// The wires in use, numbered in the order of first use, with their capacities. Besides the fabric's wires
// each device has one for copies between ranks that it holds itself.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/cluster.h"

namespace moebius {

class WireTable {
 public:
  explicit WireTable(const Cluster& cluster) : cluster_(cluster), health_(cluster.fabric, cluster.damaged) {}

  int wire(WireId id);
  // What a wire is; nothing for a wire of copies.
  const std::optional<WireId>& id(int wire) const { return ids_[wire]; }
  // A copy inside a device's memory reads and writes: half of the memory rate that a streaming kernel
  // achieves; of a machine of virtual ranks: as was measured.
  int local_copy(int device);
  double capacity(int wire) const { return capacities_[wire]; }  // bytes per second
  int size() const { return static_cast<int>(capacities_.size()); }

 private:
  std::int32_t& entry(int kind, int index);
  int insert(double capacity, std::optional<WireId> id);

  const Cluster& cluster_;
  PathHealth health_;  // from the start
  std::vector<double> capacities_;
  std::vector<std::optional<WireId>> ids_;
  std::array<std::vector<std::int32_t>, kNumWireKinds + 1>
      index_;  // by kind (the last: local copies); -1: not in use
};

}  // namespace moebius
