// The wires in use, numbered in the order of first use, with their capacities. Besides the fabric's wires
// each device has one for copies between ranks that it holds itself, and each NIC one for the messages that
// are posted to it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/cluster.h"

namespace moebius {

// As WireTable::kind() says it: "leaf-up"; "copy" for what moves inside a device.
std::string_view wire_kind_name(int kind);

class WireTable {
 public:
  explicit WireTable(const Cluster& cluster) : cluster_(cluster), health_(cluster.fabric, cluster.damaged) {}

  int wire(WireId id);
  // A copy inside a device's memory reads and writes: half of the memory rate that a streaming kernel
  // achieves; of a machine of virtual ranks: as was measured.
  int local_copy(int device);
  // Of the device that a NIC is named by: messages per second instead of bytes; -1: they cost nothing.
  int posting(int nic);
  double capacity(int wire) const { return capacities_[wire]; }  // bytes per second
  int kind(int wire) const { return ids_[wire].first; }          // a WireKind; then: a copy, posting
  int index(int wire) const { return ids_[wire].second; }        // as in WireId; else: the device
  std::string name(int wire) const;                              // "leaf-up 3"
  int size() const { return static_cast<int>(capacities_.size()); }

 private:
  std::int32_t& entry(int kind, int index);
  int insert(int kind, int index, double capacity);

  const Cluster& cluster_;
  PathHealth health_;  // from the start
  std::vector<double> capacities_;
  std::vector<std::pair<std::int32_t, std::int32_t>> ids_;  // kind and index
  std::array<std::vector<std::int32_t>, kNumWireKinds + 2>
      index_;  // by kind (the last: local copies, posting); -1: not in use
};

}  // namespace moebius
