// What crosses each wire when every device of a set sends to every other: pairs counted by where they stand,
// never one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hw/fabric/fabric.h"

namespace moebius {

// Devices are alike where pool and index in the node are equal, and a *cell* holds the alike ones of a leaf.
// Two messages between nodes cross the same wires of the sender's node if they come from one device and go to
// alike ones; the same shared wires if they go from one cell to one cell; and so backwards.
class MeshPairs {
 public:
  using Visit = std::function<void(WireId wire, int sender, double pairs)>;  // one of the senders

  // The devices are distinct; `fabric` must outlive this.
  MeshPairs(const std::vector<int>& devices, const Fabric& fabric, RailChange change);

  // Wires may come several times; what they carry adds up.
  void visit_own_wires(const Visit& visit) const;     // of devices and of pairs in a node: n times kinds
  void visit_shared_wires(const Visit& visit) const;  // of leaves and pods: cells squared
  double largest_latency() const;                     // s
  double mean_latency() const;                        // s, over all pairs

 private:
  struct Place {
    int device, node, kind, cell;
  };
  // Members of a kind or cell, two of them in different nodes if there are.
  struct Sample {
    std::int64_t size = 0;
    int device = -1, node = -1, device_elsewhere = -1;
    void add(const Place& place);
    int outside(int from) const { return node != from ? device : device_elsewhere; }  // -1: none
  };
  struct Node {
    int first = 0, last = 0;  // in places_
  };

  using Latency = std::function<void(double seconds, double pairs)>;

  void visit_cells(const std::function<void(int from, int to, double pairs)>& visit) const;
  void visit_latencies(const Latency& visit) const;
  std::vector<std::int32_t> pairs_in_nodes() const;

  const Fabric& fabric_;
  RailChange change_;
  std::vector<Place> places_;  // by node
  std::vector<Node> nodes_;
  std::vector<Sample> kinds_, cells_;
};

}  // namespace moebius
