#include "sim/network/message_start.h"

#include <algorithm>
#include <cmath>

namespace moebius {

double start_of_message(const Fabric& fabric, int from, int to, double bytes) {
  const PacketTransport& transport = fabric.spec().transport;
  if (transport.ideal || bytes <= 0 || fabric.node_of(from) == fabric.node_of(to)) return 0;
  const WireId nic{WireKind::kNicOut, fabric.standing(fabric.over_nics(from, to).first).nic};
  const double credited = transport.payload() / fabric.capacity(nic).value;  // s for each packet
  const double packet = credited * transport.efficiency() * transport.packet / transport.payload();
  const double packets = bytes / transport.payload();
  // The first packet there, and its credit back.
  const double credit_at =
      packet + fabric.latency(from, to).seconds() + fabric.acknowledgement(from, to).seconds();
  const double unasked = std::min({packets, 1.0 * transport.window, std::ceil(credit_at / packet)});
  if (unasked == packets) return packets * (packet - credited);
  return std::max(credit_at, unasked * packet) - unasked * credited;
}

}  // namespace moebius
