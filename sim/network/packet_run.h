// The state of flows that go packet by packet, and the events that move it: see packet_flows.h for what is
// modelled. Flows may be added while others are under way.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "hw/fabric/fabric.h"
#include "hw/fabric/transport.h"
#include "sim/network/calendar.h"
#include "sim/network/packet_flows.h"

namespace moebius {

class PacketRun {
 public:
  // `burst` packets of a flow stay together: see run_packet_flows().
  PacketRun(const Fabric& fabric, const Transport& transport, std::uint64_t seed, int burst);

  // The flow begins at `now`, at least the time of the last advance(); returns its number. `salt` tells the
  // hashes of flows between the same devices apart; with -1 they have the same, and their routes are kept.
  std::int32_t add(const PacketFlow& flow, int salt, double now);
  bool busy() const { return calendar_ && !calendar_->empty(); }
  double next_time() { return calendar_->next_time(); }  // of something that happens, or a little earlier
  double step() const { return calendar_->width(); }     // s: times of events are known to this
  // All that happens until `to`; then ended() has grown by the flows that are complete, with their times.
  void advance(double to);
  struct Ended {
    std::int32_t flow = 0;
    double arrived = 0;       // s: the last byte; both may be after advance()'s `to`
    double acknowledged = 0;  // s: the sender holds the last acknowledgement
  };
  std::vector<Ended>& ended() { return ended_; }
  std::int64_t resent() const { return resent_; }

 private:
  struct Port {
    double busy_until = 0;     // s
    double per_byte = 0;       // s
    std::int32_t newest = -1;  // packet that was queued last, and when it leaves
    double newest_leaves = 0;
  };

  // The ports of one path there, and of one back.
  struct Way {
    std::int32_t there = 0, back = 0;  // first of `length` in hops_
  };

  struct Flow {
    std::int32_t sender = 0, receiver = 0;
    std::int32_t first_way = 0, ways = 0, length = 0;
    double link_latency = 0;  // s, of each of `length` links
    double last_bytes = 0;    // on the wire, of the last packet
    std::int32_t packets = 0, sent = 0, arrived = 0;
    std::int32_t credits = 0;             // that the sender holds
    std::int32_t received = 0;            // that it ever got; from the first one on it sends on credit alone
    std::int32_t asked = 0, granted = 0;  // credits since the beginning, as the receiver counts them
    std::int32_t resend = 0;              // trimmed and known to be, not yet sent again
    bool resend_last = false;             // the last packet is among them
    bool waits_to_send = false, waits_for_pull = false;
    std::int32_t next_way = 0;
    std::uint64_t skip = 0;  // entropies (modulo 64) whose last packet was trimmed
  };

  struct Packet {
    std::int32_t flow = 0, way = 0;  // way: of the flow
    std::int32_t asks = 0;           // credits since the beginning that the sender asks for
    std::int16_t stage = 0;          // the port that it reaches next; the flow's length: the receiver
    bool last = false;
  };

  struct Sender {
    std::int32_t port = 0;
    std::deque<std::int32_t> ready = {};  // flows, round robin
    bool scheduled = false;
  };

  struct Receiver {
    std::deque<std::int32_t> asking = {};  // flows that want credit, round robin
    double spacing = 0;                    // s between pulls
    double next_pull = 0;
    bool scheduled = false;
  };

  enum Kind : std::uint8_t { kArrive, kSend, kPull, kCredit, kTrimmed };

  double packets_of(const PacketFlow& flow) const { return std::ceil(flow.bytes / transport_.payload()); }
  struct Ways {
    std::int32_t first = 0, count = 0, length = 0;
  };
  Ways ways_of(const PacketFlow& flow, int salt, int packets);
  Ways new_ways(const PacketFlow& flow, int salt, int packets);
  int path_of(const PacketFlow& flow, std::uint64_t hash, int paths) const;
  std::int32_t route(int from, int to, int path, std::vector<std::int32_t>& known);
  std::int32_t port_of(WireId wire);
  void attach(Flow& flow);
  void make_room(const Flow& flow);
  void handle(const CalendarEvent& event);
  void queue_up(std::int32_t flow, double now);
  void send(std::int32_t sender, double now);
  void emit(Flow& flow, std::int32_t index, Sender& sender, double now);
  void arrive(std::int32_t packet, double now);
  void trim(std::int32_t packet, double now);
  void deliver(std::int32_t packet, double now);
  void trimmed(std::int32_t packet, double now);
  void credit(std::int32_t flow, double now);
  void ask(std::int32_t flow, std::int32_t credits, double now);
  void pull(std::int32_t receiver, double now);
  void control(const Flow& flow, std::int32_t way, double now);
  bool may_send(const Flow& flow) const;
  std::int32_t asks(const Flow& flow) const;
  std::int32_t next_way(Flow& flow);
  double bytes_of(const Packet& packet) const {
    return packet.last ? flows_[packet.flow].last_bytes : transport_.packet * burst_;
  }
  double head_of(const Packet& packet) const { return std::min(bytes_of(packet), transport_.packet); }
  double header() const { return transport_.header * burst_; }

  const Fabric& fabric_;
  const Transport transport_;
  const std::uint64_t seed_;
  const bool adaptive_;
  const int burst_;  // packets that stay together: what is called a packet below
  const int window_, bursts_per_ack_;
  std::vector<Port> ports_;
  std::array<std::vector<std::int32_t>, kNumWireKinds> port_ids_;  // by kind and index; -1: not in use
  std::vector<std::int32_t> hops_;
  std::vector<WireId> wires_;               // of the route at hand
  std::vector<std::int32_t> there_, back_;  // of the flow at hand: routes by path
  std::vector<Way> ways_;
  std::vector<Flow> flows_;
  std::vector<Sender> senders_;
  std::vector<Receiver> receivers_;
  std::map<std::int32_t, std::int32_t> sender_of_port_, receiver_of_port_;
  std::vector<Packet> packets_;
  std::vector<std::int32_t> free_;
  std::optional<Calendar> calendar_;
  std::map<std::array<std::int32_t, 4>, Ways> kept_ways_;  // by from, to, path, number
  double slowest_ = 0, furthest_ = 0;                      // s per byte; s
  std::vector<Ended> ended_;
  std::int64_t resent_ = 0;
  std::uint64_t draws_ = 0;
};

}  // namespace moebius
