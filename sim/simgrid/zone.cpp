#include "sim/simgrid/zone.h"

#include <fmt/format.h>

#include <simgrid/kernel/routing/NetPoint.hpp>

#include "hw/error.h"

namespace moebius {

Zone::Zone(const Cluster& cluster, const std::vector<int>& devices, bool with_links, std::uint64_t seed)
    : NetZoneImpl("cluster"), cluster_(cluster), paths_(cluster, seed) {
  if (with_links && paths_.by_ports() && !paths_.single())
    throw run_error(
        "the native network sends a message over one path: around broken parts it needs ecmp or static "
        "routing");
  const int ends = with_links && paths_.single() ? paths_.flows_of_message() : 1;
  for (const int device : devices) {
    for (int i = 0; i < ends; ++i) {
      const std::string name =
          ends == 1 ? fmt::format("device-{}", device) : fmt::format("device-{}-{}", device, i);
      simgrid::s4u::Host* host = create_host(name, {1e9});
      ends_.push_back({device, i});
      CHECK(ends_[host->get_netpoint()->id()] == ends_.back(), "hosts are numbered as they are made");
      hosts_[ends_.back()] = host;
    }
  }
  if (!with_links) return;
  for (const End& from : ends_) {
    for (const int to : devices) add_links(from, to);
  }
}

std::vector<WireId> Zone::route(End from, int to) {
  std::vector<WireId> wires;
  if (paths_.single()) {
    paths_.wires(from.first, to, paths_.of_queue_pair(from.first, to, RailChange::kInNode, from.second),
                 wires);
  } else {
    cluster_.fabric.route(from.first, to, wires);
  }
  return wires;
}

Zone::LinkImpl* Zone::add_link(std::string_view kind, int index, double rate) {
  return get_iface()->create_link(fmt::format("{}-{}", kind, index), rate)->get_impl();
}

void Zone::add_links(End from, int to) {
  if (from.first == to) {
    LinkImpl*& copies = local_copies_[to];
    const Accelerator& chip = cluster_.pool_of(to).accelerator;
    if (copies == nullptr) copies = add_link("copy", to, chip.memory_rate.value * chip.memory_efficiency / 2);
    return;
  }
  for (const WireId wire : route(from, to)) {
    LinkImpl*& link = links_[wire];
    if (link != nullptr) continue;
    const double rate = cluster_.fabric.capacity(wire).value * paths_.health().share(wire);
    link = add_link(to_string(wire.kind), wire.index, rate);
  }
}

void Zone::get_local_route(const simgrid::kernel::routing::NetPoint* from,
                           const simgrid::kernel::routing::NetPoint* to,
                           simgrid::kernel::routing::Route* into, double* latency) {
  const End source = ends_[from->id()];
  const int destination = ends_[to->id()].first;
  if (source.first == destination) {
    into->link_list_.push_back(local_copies_.at(destination));
    return;
  }
  for (const WireId wire : route(source, destination)) into->link_list_.push_back(links_.at(wire));
  if (latency != nullptr) *latency += cluster_.fabric.latency(source.first, destination).seconds();
}

}  // namespace moebius
