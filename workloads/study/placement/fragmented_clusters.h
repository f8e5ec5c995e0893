// Random clusters of which others have taken a part, with a training job that is to run on what is left: what
// placement is judged on. Each is a whole scenario, drawn from one number.
//
// A fabric preset with leaves small enough that there are several, 24 to 64 nodes of eight. Then jobs of
// other tenants come and go, first fit: whole nodes in the order of their numbers, parts of a node on the
// first node with room. Between a third and two thirds of the devices are taken when the job comes. One
// cluster in three has tenants of one, two and four devices, so that nodes are left in part; in the others
// only whole nodes are free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moebius {

struct FragmentedCluster {
  std::string name;                // "17: clos-roce, 40 nodes, tp 4 pp 2 ep 8"
  std::string scenario;            // JSON
  std::vector<std::int32_t> free;  // devices, ascending
  int ranks = 0;                   // at most as many
  bool whole_nodes = true;         // free devices stand on whole nodes
};

FragmentedCluster fragmented_cluster(std::uint64_t seed);

}  // namespace moebius
