#include "sim/network/packet_flows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/network/packet_run.h"

namespace moebius {
namespace {

constexpr double kManyPackets = 50'000;  // of all flows together, resent ones not counted

}  // namespace

int packets_in_burst(double packets, double flows) {
  const double most = std::min(4.0, packets / flows / 64);
  return std::max(1, static_cast<int>(std::min(most, std::ceil(packets / kManyPackets))));
}

PacketFlowTimes run_packet_flows(const Fabric& fabric, const Transport& transport,
                                 std::span<const PacketFlow> flows, std::uint64_t seed) {
  PacketFlowTimes times;
  for (const PacketFlow& flow : flows)
    times.packets += static_cast<std::int64_t>(std::ceil(flow.bytes / transport.payload()));
  const int burst = packets_in_burst(static_cast<double>(times.packets), static_cast<double>(flows.size()));
  PacketRun run(fabric, transport, seed, burst);
  for (std::size_t i = 0; i < flows.size(); ++i) run.add(flows[i], static_cast<int>(i), 0);
  run.advance(std::numeric_limits<double>::infinity());
  times.completion.resize(flows.size());
  for (const PacketRun::Ended& ended : run.ended()) times.completion[ended.flow] = ended.acknowledged;
  times.resent = run.resent();
  return times;
}

}  // namespace moebius
