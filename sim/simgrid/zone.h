// The cluster as one flat SimGrid zone: a host for each device in use (for each of its queue pairs, where
// these have paths of their own, as a route is between two hosts), a link for each wire between them, and
// routes that the fabric computes when they are asked for. Only for the files that include SimGrid.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include "hw/cluster.h"
#include "sim/traffic/flow_paths.h"

namespace moebius {

class Zone : public simgrid::kernel::routing::NetZoneImpl {
 public:
  // Hosts for `devices`; links for all wires between any two of them when `with_links`.
  // `seed`: of the hash that picks paths. Throws run_error where messages go by several paths at a time.
  Zone(const Cluster& cluster, const std::vector<int>& devices, bool with_links, std::uint64_t seed);

  simgrid::s4u::Host* host(int device, int queue_pair = 0) const { return hosts_.at({device, queue_pair}); }

  void get_local_route(const simgrid::kernel::routing::NetPoint* from,
                       const simgrid::kernel::routing::NetPoint* to, simgrid::kernel::routing::Route* into,
                       double* latency) override;

 private:
  using End = std::pair<int, int>;  // device and queue pair
  using LinkImpl = simgrid::kernel::resource::StandardLinkImpl;

  void add_links(End from, int to);
  LinkImpl* add_link(std::string_view kind, int index, double rate);

  std::vector<WireId> route(End from, int to);

  const Cluster& cluster_;
  FlowPaths paths_;
  std::vector<End> ends_;  // by SimGrid's number of the host in the zone
  std::map<End, simgrid::s4u::Host*> hosts_;
  std::map<WireId, LinkImpl*> links_;
  std::map<int, LinkImpl*> local_copies_;  // inside a device, between ranks that it holds
};

}  // namespace moebius
