// Groups that a scale-up domain has room for and that stand over several all the same, because the ranks fill
// devices one after the other: 64 ranks of experts on racks of 72, say. They run, over the network. Groups of
// every n-th rank need room for those between them too: of two context ranks, each of eight tensor ranks, a
// node of eight holds one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/cluster.h"
#include "workloads/schedule/layout.h"

namespace moebius {

// A sentence about the largest of such groups (tensor, dense tensor, context, expert, expert tensor), with
// the devices that would keep them together; none where there is no such group.
std::vector<std::string> groups_over_domains(const Cluster& cluster, const Layout& layout);

struct WholeGroups {
  const char* name = nullptr;         // "expert"
  std::vector<std::int32_t> devices;  // ascending: of each domain the first ones that such groups fill
};
// The devices that would keep them together; nothing where there is no such group.
std::optional<WholeGroups> devices_of_whole_groups(const Cluster& cluster, const Layout& layout);

}  // namespace moebius
