#include "sim/network/stand_ins.h"

#include <algorithm>
#include <cstddef>

namespace moebius {

StandIns::StandIns(const Fabric& fabric, const Layout& layout)
    : of_device_(fabric.num_devices()), devices_(fabric.num_devices()), nics_(fabric.num_devices()) {
  for (std::size_t device = 0; device < of_device_.size(); ++device)
    of_device_[device] = static_cast<std::int32_t>(device);
  for (const RankClass& rank_class : layout.classes) {
    folded_ = folded_ || rank_class.size() > 1;
    const std::int32_t stand_in = layout.device_of_rank[rank_class.representative()];
    for (const std::int32_t rank : rank_class.ranks) of_device_[layout.device_of_rank[rank]] = stand_in;
  }
  // Devices that share a NIC have one wire there.
  std::vector<bool> counted(of_device_.size());
  for (const std::int32_t device : layout.device_of_rank) {
    ++devices_[of_device_[device]];
    const std::int32_t nic = fabric.own_wire(WireKind::kNicOut, device).index;
    if (counted[nic]) continue;
    counted[nic] = true;
    ++nics_[of_device_[nic]];
  }
  // Messages through host memory are those of every node, not of a class's representative.
  if (folded_ && fabric.spec().by_host.empty()) count_hosts(fabric, layout);
}

// A class copies to and from the memory of its representative's node, with as many ranks as it has there.
void StandIns::count_hosts(const Fabric& fabric, const Layout& layout) {
  hosts_.resize(of_device_.size());
  std::vector<double> here(of_device_.size());
  for (const RankClass& rank_class : layout.classes) {
    const std::int32_t device = layout.device_of_rank[rank_class.representative()];
    const Fabric::Standing place = fabric.standing(device);
    const std::int32_t host = device - place.local;
    for (const std::int32_t rank : rank_class.ranks)
      here[host] += fabric.node_of(layout.device_of_rank[rank]) == place.node;
    hosts_[host] += rank_class.size();
  }
  for (std::size_t host = 0; host < here.size(); ++host)
    if (here[host] > 0) hosts_[host] /= here[host];
}

double StandIns::times(WireId wire) const {
  if (!folded_) return 1;
  switch (wire.kind) {
    case WireKind::kScaleUpOut:
    case WireKind::kScaleUpIn:
    case WireKind::kBoardOut:
    case WireKind::kBoardIn:
    case WireKind::kHostOut:
    case WireKind::kHostIn:
      return std::max(1.0, devices_[wire.index]);
    case WireKind::kNicOut:
    case WireKind::kNicIn:
      return std::max(1.0, nics_[wire.index]);
    case WireKind::kHostMemory:
      return hosts_.empty() ? 1 : std::max(1.0, hosts_[wire.index]);
    case WireKind::kScaleUpPair:
    case WireKind::kNicOutPort:
    case WireKind::kNicInPort:
    case WireKind::kLeafUp:
    case WireKind::kLeafDown:
    case WireKind::kLeafUpPort:
    case WireKind::kLeafDownPort:
    case WireKind::kPodUp:
    case WireKind::kPodDown:
    case WireKind::kPodUpPort:
    case WireKind::kPodDownPort:
    case WireKind::kRegionLink:
      return 1;
  }
  return 1;
}

}  // namespace moebius
