// CPU forwarding: where a NIC cannot reach the memory of a device (another vendor's network, no driver for
// it), the sending device copies a message to host memory, a NIC of the node sends it from there, and at the
// other end it is copied from host memory to the receiving device. The host reaches all NICs of its node, so
// that nothing changes rail over the scale-up link. Three stages work on different chunks at once: copy out,
// network, copy in. With K chunks the way takes the sum of the stages for one chunk, and the slowest stage
// K - 1 times more: all bytes over the slowest stage, and one chunk over each of the others.
#include <algorithm>

#include "hw/fabric/fabric.h"

namespace moebius {

bool Fabric::over_host(const Site& from, const Site& to) const {
  if (from.node == to.node) return false;
  const auto pair = std::minmax(from.pool, to.pool);
  return std::find(spec_.by_host.begin(), spec_.by_host.end(), std::pair<int, int>(pair)) !=
         spec_.by_host.end();
}

bool Fabric::by_host(int from, int to) const {
  return !spec_.by_host.empty() && over_host(site_of(from), site_of(to));
}

// The memory twice: one side of it is the copy's, the other the NIC's.
void Fabric::add_host(const Site& site, WireKind copy, std::vector<WireId>& wires) const {
  wires.push_back({copy, site.device});
  wires.push_back({WireKind::kHostMemory, first_device_of_node(site)});
  wires.push_back({WireKind::kHostMemory, first_device_of_node(site)});
}

double Fabric::chunk_seconds(int from, int to, double bytes) const {
  if (!by_host(from, to)) return 0;
  const Site a = site_of(from), b = site_of(to);
  const FabricPool &sender = pools_[a.pool], &receiver = pools_[b.pool];
  const ByteRate stages[] = {
      std::min(sender.host_rate, sender.host_memory_rate),
      std::min({sender.nic_rate, receiver.nic_rate, sender.host_memory_rate, receiver.host_memory_rate}),
      std::min(receiver.host_rate, receiver.host_memory_rate)};
  double all = 0, slowest = 0;
  for (const ByteRate rate : stages) {
    const double seconds = std::min(bytes, spec_.forwarding_chunk.value) / rate.value;
    all += seconds;
    slowest = std::max(slowest, seconds);
  }
  return all - slowest;
}

// Pools are few: the smallest index that is reached, step by step, over pools that are joined directly.
int Fabric::island_of(int device) const {
  if (spec_.by_host.empty()) return 0;
  const int pools = static_cast<int>(pools_.size());
  std::vector<int> island(pools);
  for (int pool = 0; pool < pools; ++pool) island[pool] = pool;
  for (int round = 0; round < pools; ++round) {
    for (int a = 0; a < pools; ++a) {
      for (int b = a + 1; b < pools; ++b) {
        const bool apart =
            std::find(spec_.by_host.begin(), spec_.by_host.end(), std::pair(a, b)) != spec_.by_host.end();
        if (!apart) island[a] = island[b] = std::min(island[a], island[b]);
      }
    }
  }
  return island[site_of(device).pool];
}

}  // namespace moebius
