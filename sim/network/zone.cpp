#ifdef MOEBIUS_SIMGRID
#include "sim/network/zone.h"

#include <fmt/format.h>

#include <simgrid/kernel/routing/NetPoint.hpp>

#include "hw/error.h"

namespace moebius {

Zone::Zone(const Cluster& cluster, const std::vector<int>& devices, bool with_links)
    : NetZoneImpl("cluster"), cluster_(cluster), devices_(devices) {
  for (const int device : devices) {
    simgrid::s4u::Host* host = create_host(fmt::format("device-{}", device), {1e9});
    CHECK(devices_[host->get_netpoint()->id()] == device, "hosts are numbered as they are made");
    hosts_[device] = host;
  }
  if (!with_links) return;
  for (const int from : devices) {
    for (const int to : devices) add_links(from, to);
  }
}

Zone::LinkImpl* Zone::add_link(std::string_view kind, int index, double rate) {
  return get_iface()->create_link(fmt::format("{}-{}", kind, index), rate)->get_impl();
}

void Zone::add_links(int from, int to) {
  if (from == to) {
    const Accelerator& chip = cluster_.pool_of(from).accelerator;
    local_copies_[from] = add_link("copy", from, chip.memory_rate.value * chip.memory_efficiency / 2);
    return;
  }
  std::vector<WireId> wires;
  cluster_.fabric.route(from, to, wires);
  for (const WireId wire : wires) {
    LinkImpl*& link = links_[wire];
    if (link != nullptr) continue;
    link = add_link(to_string(wire.kind), wire.index, cluster_.fabric.capacity(wire).value);
  }
}

void Zone::get_local_route(const simgrid::kernel::routing::NetPoint* from,
                           const simgrid::kernel::routing::NetPoint* to,
                           simgrid::kernel::routing::Route* into, double* latency) {
  const int source = devices_[from->id()], destination = devices_[to->id()];
  if (source == destination) {
    into->link_list_.push_back(local_copies_.at(source));
    return;
  }
  std::vector<WireId> wires;
  cluster_.fabric.route(source, destination, wires);
  for (const WireId wire : wires) into->link_list_.push_back(links_.at(wire));
  if (latency != nullptr) *latency += cluster_.fabric.latency(source, destination).seconds();
}

}  // namespace moebius
#endif
