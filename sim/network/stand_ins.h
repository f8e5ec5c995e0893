// Folding: whose wires stand for whose. Those of the device of a class's representative do for those of the
// devices of all its ranks. Of the links of full meshes one does for all between ranks of the same two
// classes that meet in the same groups or, where they meet in none, are as many ranks apart.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/cluster.h"
#include "workloads/schedule/layout.h"

namespace moebius {

class StandIns {
 public:
  StandIns() = default;
  StandIns(const Fabric& fabric, const Layout& layout);

  bool folded() const { return folded_; }
  // The device itself where its rank represents a class or where it holds none.
  int of(int device) const { return of_device_[device]; }
  std::int32_t of_pair(std::int32_t pair) const { return pairs_.empty() ? pair : of_pair_[pair]; }
  // So many wires are simulated as this one: of a device, its NIC, a link of a full mesh, or the memory of
  // its host, but where messages go through that. What belongs to no device is simulated by itself.
  double times(WireId wire) const;
  // Of hosts through whose memory messages go, each named by the first device of its node: the first on which
  // as many ranks of each class stand, and how many of them there are. Groups that load hosts alike are
  // simulated on some of these.
  std::int32_t alike_host(std::int32_t host) const { return num_alike_.empty() ? host : alike_host_[host]; }
  double num_alike(std::int32_t host) const { return num_alike_.empty() ? 1 : num_alike_[alike_host(host)]; }

 private:
  void count_hosts(const Fabric& fabric, const Layout& layout);
  void find_alike_hosts(const Fabric& fabric, const Layout& layout);
  void count_pairs(const Fabric& fabric, const Layout& layout);

  std::vector<std::int32_t> of_device_;
  std::vector<double> devices_, nics_;    // that a device, or the NIC named by it, stands for
  std::vector<double> hosts_;             // or the node named by it; empty: each for itself
  std::vector<std::int32_t> alike_host_;  // by host; empty, as the next: no messages go through any
  std::vector<double> num_alike_;
  std::vector<std::int32_t> of_pair_;  // by index of a link; empty, as the next: no full mesh
  std::vector<double> pairs_;          // links that a link stands for
  bool folded_ = false;
};

}  // namespace moebius
