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
    const int spine = read_index(section, describing, "spine", "the spine: pod x uplinks of a leaf + uplink");
    const int nic = read_index(section, describing, "nic", "the NIC that serves this device");
    const int uplink = read_index(section, describing, "uplink", "only this link of the leaf or spine");
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
    cluster.damaged.push_back(part);
  }
}

}  // namespace moebius
