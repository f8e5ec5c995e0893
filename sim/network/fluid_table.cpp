// The rows of a packet-level table by max-min: what fluid sharing says of the same flows, beside the packets.
#include "sim/network/message_start.h"
#include "sim/network/network.h"
#include "sim/network/packet_table.h"
#include "sim/network/wire_table.h"

namespace moebius {
namespace {

// One path: by its ports. All of them alike: over the bundles of ports.
std::vector<WireId> way_of(const Fabric& fabric, const PacketFlow& flow) {
  std::vector<WireId> wires;
  if (flow.path >= 0) {
    fabric.route_by_ports(flow.from, flow.to, flow.path, wires);
  } else {
    fabric.route(flow.from, flow.to, wires);
  }
  return wires;
}

Step step_of(const Fabric& fabric, const PacketFlow& flow, WireTable& table) {
  Step step;
  FlowClass message{flow.bytes, {}};
  for (const WireId wire : way_of(fabric, flow)) message.links.push_back({table.wire(wire), 1});
  step.flows = {std::move(message)};
  step.latency = std::max(0.0, fabric.latency(flow.from, flow.to).seconds() +
                                   start_of_message(fabric, flow.from, flow.to, flow.bytes));
  return step;
}

}  // namespace

FlowFigures predict_by_sharing(const PacketRow& row, const PacketLinks& links,
                               const PacketTransport& transport) {
  PacketRow paced = row;
  paced.spec.transport = transport;
  paced.spec.transport.ideal = false;
  paced.spec.transport_efficiency = transport.efficiency();
  PacketLinks achieved = links;
  achieved.rate = links.rate * transport.efficiency();
  const Cluster cluster{.pools = {}, .fabric = paced.fabric(achieved)};
  WireTable table(cluster);
  std::vector<Step> steps;
  for (const PacketFlow& flow : row.flows) steps.push_back(step_of(cluster.fabric, flow, table));
  const std::unique_ptr<Network> network = make_fluid_network(table);
  for (std::size_t i = 0; i < steps.size(); ++i)
    network->start(static_cast<std::int32_t>(i), steps[i], i, Time{});
  PacketFlowTimes times;
  times.completion.resize(steps.size());
  std::vector<std::int32_t> ended;
  for (Time now = network->next_event(); now < kForever; now = network->next_event()) {
    network->advance(now, ended);
    for (const std::int32_t flow : ended) {
      const auto [from, to] = std::pair(row.flows[flow].from, row.flows[flow].to);
      times.completion[flow] = (now + cluster.fabric.acknowledgement(from, to)).seconds();
    }
    ended.clear();
  }
  return figures_of(times);
}

}  // namespace moebius
