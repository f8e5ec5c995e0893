// Where the ranks of a layout stand in the fabric, and which wires stand for which under folding: the wires
// of a device whose rank is simulated by the representative of its class are those of the representative's
// device.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "hw/cluster.h"
#include "workloads/schedule/layout.h"

namespace moebius {

struct Member {
  std::int32_t rank = 0;
  std::int32_t rank_class = 0;
  std::int32_t device = 0;
  std::int32_t node = 0;
};

// The members of a group in group order, and, by node, the indices of those that stand in it (by device).
struct GroupSites {
  std::vector<Member> members;
  std::vector<std::vector<std::int32_t>> nodes;

  int size() const { return static_cast<int>(members.size()); }
  // Members per node where every node holds as many, else 0.
  int per_node() const;
};

class Sites {
 public:
  Sites(const Cluster& cluster, const Layout& layout);

  const Layout& layout() const { return layout_; }
  const Cluster& cluster() const { return cluster_; }
  const Fabric& fabric() const { return cluster_.fabric; }
  int device_of(int rank) const { return layout_.device_of_rank[rank]; }
  GroupSites group(const std::vector<std::int32_t>& ranks) const;

  // The device whose wires stand for those of `device`: itself where its rank represents a class or where it
  // holds none.
  int stand_in(int device) const { return stand_in_[device]; }
  bool folded() const { return folded_; }
  // Ranks of the class whose traffic crosses the same leaf or pod wire, for one of them that `members` lists.
  double ranks_for_each(const GroupSites& members, int member, WireId shared);

 private:
  std::int32_t shared_wire(int device, WireKind kind);
  bool crosses(int device, WireId shared);
  std::array<int, 3> same_rail_elsewhere(int device) const;

  const Cluster& cluster_;
  const Layout& layout_;
  std::vector<std::int32_t> stand_in_;  // by device
  bool folded_ = false;
  std::map<std::pair<int, WireId>, int> class_ranks_on_;  // (class, wire)
  std::map<int, std::array<std::int32_t, 4>>
      shared_wires_;  // by device: leaf up, leaf down, pod up, pod down
};

}  // namespace moebius
