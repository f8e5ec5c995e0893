#include "sim/network/packet_flows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/network/packet_run.h"

namespace moebius {
namespace {

constexpr double kManySends = 110'000;  // of all flows together

// About how often each packet is sent where all devices send at once: an overloaded core trims what it cannot
// carry, and on one path a flow often meets another.
double sends_of_packet(const FabricSpec& spec) {
  const bool one_path = spec.routing == Routing::kEcmp || spec.routing == Routing::kStatic;
  const double core = std::max(1.0, spec.oversubscription) * std::max(1.0, spec.core_oversubscription);
  return core * (one_path ? 2 : 1);
}

}  // namespace

int packets_in_burst(double packets, double flows, double sends) {
  const double most = std::min(4.0, packets / flows / 64);
  return std::max(1, static_cast<int>(std::min(most, std::ceil(packets * sends / kManySends))));
}

PacketFlowTimes run_packet_flows(const Fabric& fabric, const PacketTransport& transport,
                                 std::span<const PacketFlow> flows, std::uint64_t seed) {
  PacketFlowTimes times;
  for (const PacketFlow& flow : flows)
    times.packets += static_cast<std::int64_t>(std::ceil(flow.bytes / transport.payload()));
  const int burst = packets_in_burst(static_cast<double>(times.packets), static_cast<double>(flows.size()),
                                     sends_of_packet(fabric.spec()));
  PacketRun run(fabric, transport, seed, burst);
  for (std::size_t i = 0; i < flows.size(); ++i) run.add(flows[i], static_cast<int>(i), 0);
  run.advance(std::numeric_limits<double>::infinity());
  times.completion.resize(flows.size());
  for (const PacketRun::Ended& ended : run.ended()) times.completion[ended.flow] = ended.acknowledged;
  times.resent = run.resent();
  return times;
}

}  // namespace moebius
