// The cluster as one flat SimGrid zone: a host for each device in use, a link for each wire between them, and
// routes that the fabric computes when they are asked for. Only for the files that include SimGrid.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include "hw/cluster.h"

namespace moebius {

class Zone : public simgrid::kernel::routing::NetZoneImpl {
 public:
  // Hosts for `devices`; links for all wires between any two of them when `with_links`.
  Zone(const Cluster& cluster, const std::vector<int>& devices, bool with_links);

  simgrid::s4u::Host* host(int device) const { return hosts_.at(device); }

  void get_local_route(const simgrid::kernel::routing::NetPoint* from,
                       const simgrid::kernel::routing::NetPoint* to, simgrid::kernel::routing::Route* into,
                       double* latency) override;

 private:
  using LinkImpl = simgrid::kernel::resource::StandardLinkImpl;

  void add_links(int from, int to);
  LinkImpl* add_link(std::string_view kind, int index, double rate);

  const Cluster& cluster_;
  std::vector<int> devices_;  // by SimGrid's number of the host in the zone
  std::map<int, simgrid::s4u::Host*> hosts_;
  std::map<WireId, LinkImpl*> links_;
  std::map<int, LinkImpl*> local_copies_;  // inside a device, between ranks that it holds
};

}  // namespace moebius
