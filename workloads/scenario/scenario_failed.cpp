// Parts of the network that are broken or slowed from the start: {"leaf": 3, "uplink": 5}, {"spine": 2},
// {"nic": 17}, each with the "capacity" that is left.
#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {
namespace {

PartHealth part_of(int leaf, int spine, int nic, int uplink) {
  if (leaf != kAbsent) return {uplink == kAbsent ? FabricPart::kLeaf : FabricPart::kLeafUplink, leaf};
  if (spine != kAbsent) return {uplink == kAbsent ? FabricPart::kSpine : FabricPart::kSpineUplink, spine};
  return {FabricPart::kNic, nic};
}

}  // namespace

std::vector<FailedPart> read_failed(Section& cluster, bool describing) {
  std::vector<FailedPart> failed;
  for (Section& section : cluster.objects("failed", false, "parts of the network that are broken")) {
    const int leaf = read_index(section, describing, "leaf", "the leaf, with all NICs on it");
    const int spine = read_index(section, describing, "spine", kSpineNumbers);
    const int nic = read_index(section, describing, "nic", "the NIC that serves this device");
    const int uplink = read_index(section, describing, "uplink",
                                  "only this link of the leaf, or of the spine of three tiers");
    const double capacity = section.number("capacity", {.low = 0, .high = 1}, 0, "share that is left of it");
    section.finish();
    if (describing) continue;
    Place place = section.place_of("");
    place.pointer.pop_back();  // the slash before no key
    if ((leaf != kAbsent) + (spine != kAbsent) + (nic != kAbsent) != 1)
      place.fail("expected one of \"leaf\", \"spine\" and \"nic\"");
    if (nic != kAbsent && uplink != kAbsent) section.place_of("uplink").fail("a NIC has no uplinks");
    PartHealth part = part_of(leaf, spine, nic, uplink);
    part.uplink = uplink == kAbsent ? 0 : uplink;
    part.capacity = capacity;
    failed.push_back({part, place});
  }
  return failed;
}

void set_failed(const std::vector<FailedPart>& failed, Cluster& cluster) {
  for (const auto& [part, place] : failed) {
    const std::string problem = problem_of(part, cluster.fabric);
    if (!problem.empty()) place.fail(problem);
    for (std::size_t i = 0; i < cluster.damaged.size(); ++i) {
      if (same_part(part, cluster.damaged[i], cluster.fabric))
        place.fail(fmt::format("this part is named already: see /cluster/failed/{}", i));
    }
    cluster.damaged.push_back(part);
  }
  if (failed.empty()) return;
  cluster.damaged_at = failed.front().place;
  cluster.damaged_at.pointer = "/cluster/failed";
}

// What else cannot reach what shows when its messages are sent.
void check_reached(const Cluster& cluster, int ranks) {
  const Fabric& fabric = cluster.fabric;
  const int last = fabric.node_of(ranks - 1);
  if (cluster.damaged.empty() || last == 0) return;
  const PathHealth health(fabric, cluster.damaged);
  for (int device = 0, node = 0; node <= last; ++node) {
    bool reached = false;
    for (; device < fabric.num_devices() && fabric.node_of(device) == node; ++device)
      reached = reached || health.share({WireKind::kNicOut, fabric.nic_of(device)}) > 0;
    if (!reached)
      cluster.damaged_at.fail(
          fmt::format("node {} has ranks, but no NIC is left to it: nothing reaches it", node));
  }
}

}  // namespace moebius
