// Where the ranks of a layout stand in the fabric, and which wires stand for which under folding: the wires
// of a device whose rank is simulated by the representative of its class are those of the representative's
// device; a leaf's or pod's wires stand for those of all leaves or pods that as many ranks of each class use.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hw/cluster.h"
#include "sim/network/stand_ins.h"
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
  // The same by islands: members on one kind of chip, and with no host memory between them. Mostly one.
  std::vector<std::vector<std::int32_t>> islands;
  // Folding: whose traffic meets on leaf and pod wires; see like_groups.h. {0}: the group's own. Messages
  // that change rail at a spine use more of them.
  std::vector<std::int32_t> shifts = {0}, climbing_shifts = {0};
  std::vector<std::int32_t> all_shifts = {0};  // of all groups that this one stands for, its own among them
  const std::vector<std::int32_t>& shifts_of(RailChange change) const {
    return change == RailChange::kAtSpine ? climbing_shifts : shifts;
  }

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
  // With the shifts of the groups that `of` stands for.
  GroupSites group(const Group& group, const RankClass& of) const;

  // Bytes per second that one core of the slowest member's chip passes for a collective; 0: not known.
  double channel_rate(const GroupSites& group) const;

  // The device whose wires stand for those of `device`: itself where its rank represents a class or where it
  // holds none.
  int stand_in(int device) const { return stand_ins_.of(device); }
  // Of a leaf's or pod's wires and links of full meshes; all others stand for themselves.
  WireId stand_in(WireId wire) const;
  // Folding, where devices share a NIC: ranks of the classes of a group's members that stand on `nic`,
  // against those members that do. All of a class send at once, each in a group of its own. 1 where none
  // share one.
  double ranks_a_member(const GroupSites& group, int nic) const;
  // So many wires of devices are simulated as this one.
  double times(WireId wire) const { return stand_ins_.times(wire); }
  bool folded() const { return stand_ins_.folded(); }

 private:
  std::pair<int, std::string> island_of(int device) const;
  void count_on_nics();
  const Cluster& cluster_;
  const Layout& layout_;
  StandIns stand_ins_;
  std::vector<std::int32_t> leaf_stand_in_, pod_stand_in_;    // where folded
  std::map<std::pair<std::int32_t, int>, int> ranks_on_nic_;  // by class and NIC, where devices share them
};

}  // namespace moebius
