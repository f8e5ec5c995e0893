// What carries transfers, at one of three levels of detail. The machine gives it one step of a transfer at a
// time and hears when that step has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hw/units.h"
#include "sim/network/transfer.h"

namespace moebius {

class Fabric;
class WireTable;

class Network {
 public:
  virtual ~Network() = default;
  // `step` must live until it has ended. `transfer` names it in ended(); `id` orders steps that end together.
  virtual void start(std::int32_t transfer, const Step& step, std::uint64_t id, Time now) = 0;
  // When something ends or changes by itself; kForever when nothing does.
  virtual Time next_event() = 0;
  // From `now` on the wire (index in the WireTable) has `share` of its nominal capacity; 0: it is down, and
  // the flows that cross it stand still until it returns. Throws run_error where wires are not shared flow by
  // flow.
  virtual void set_capacity(int wire, double share, Time now) = 0;
  // Bytes that crossed the wire so far, up to the time of the last advance(). Throws as set_capacity() does.
  virtual double carried(int wire) const = 0;
  // Share of its bytes that each flow of the transfer's step has before it at `now`; 1 during the latency.
  // Throws as set_capacity() does.
  virtual std::vector<double> left(std::int32_t transfer, Time now);
  // From `now` on the transfer goes on with the flows of `step` instead of what was left of those before it;
  // a latency that is not over goes on. `step` must live as that of start().
  virtual void replace(std::int32_t transfer, const Step& step, Time now);
  // Goes to `now`, at most next_event(); appends the transfers whose step ends at `now`.
  virtual void advance(Time now, std::vector<std::int32_t>& ended) = 0;
};

// Each step takes as long as on an idle network.
std::unique_ptr<Network> make_alpha_beta_network();
// Flow classes share the wires by max-min.
std::unique_ptr<Network> make_fluid_network(const WireTable& wires);
// Every message packet by packet, see packet_flows.h, under the fabric's transport; refused where that is ideal.
// `seed` draws the hashes of paths; `counts`, which may be null, learns what was sent.
struct PacketCounts {
  std::int64_t packets = 0;  // distinct ones
  std::int64_t resent = 0;
};
std::unique_ptr<Network> make_packet_network(const Fabric& fabric, std::uint64_t seed, PacketCounts* counts);

}  // namespace moebius
