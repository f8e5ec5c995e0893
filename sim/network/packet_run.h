// The state of flows that go packet by packet, and the events that move it: see packet_flows.h for what is
// modelled. Flows may be added while others are under way.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "hw/fabric/fabric.h"
#include "hw/fabric/packet_transport.h"
#include "sim/network/calendar.h"
#include "sim/network/packet_flows.h"

namespace moebius {

inline constexpr int kMostWays = 64;  // that a switch chooses among

class PacketRun {
 public:
  // `burst` packets of a flow stay together: see run_packet_flows().
  PacketRun(const Fabric& fabric, const PacketTransport& transport, std::uint64_t seed, int burst);

  // The flow begins at `now`, at least the time of the last advance(); returns its number. `salt` tells the
  // hashes of flows between the same devices apart; with -1 they have the same, and their routes are kept.
  std::int32_t add(const PacketFlow& flow, int salt, double now);
  bool busy() const { return open_ > 0; }                // a flow is not complete
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
    double newest_leaves = 0;  // s: the packet that was queued last
    std::int32_t newest = -1;
    float packets_per_s = 0;  // full ones
  };

  // A flow as its sender sees it. Bytes are those on the wire.
  struct Outgoing {
    std::int32_t sender = 0;
    std::int32_t first_way = 0, ways = 0;
    std::int32_t turn = 0, order = 0;  // of its ways: those of a round come in the order turn ^ order
    std::int32_t packets = 0, sent = 0;
    std::int32_t resend = 0;   // trimmed and known to be, not yet sent again
    std::int32_t length = 0;   // ports of each way
    double latency = 0;        // s, of each of `length` links
    double last_bytes = 0;     // of the last packet
    double pace = 0, due = 0;  // s: from one packet to the next at least, and when the next may go
    std::int64_t pulled = 0;   // credit since the beginning
    std::int64_t credit = 0;   // at hand; a packet may go while there is any, so that it may become a debt
    std::int64_t unasked = 0;  // of the first window, not yet spent; of use until the receiver is heard
    std::int64_t asks = 0;
    std::uint64_t skip = 0;    // entropies (modulo 64) whose last packet was trimmed
    bool heard = false;        // an acknowledgement, a pull or a request to resend
    bool waits = false;        // in its NIC's round
    bool pauses = false;       // until it is due
    bool resend_last = false;  // the last packet is among those to resend
  };

  // And as its receiver does.
  struct Incoming {
    std::int32_t receiver = 0, arrived = 0;
    std::int32_t back = 0;                // its control packets' way: first of the same length in hops_
    std::int64_t asked = 0, granted = 0;  // bytes since the beginning
    std::int64_t resend = 0;              // bytes of trimmed packets that are yet to be granted
    bool asks = false, idle = false;      // listed there
    bool done = false;
  };

  struct Packet {
    std::int32_t flow = 0, way = 0;  // way: of the flow
    std::int32_t next = 0;           // of hops_: the port that it reaches next
    std::int16_t left = 0;           // ports from there to the receiver; 0: the receiver
    bool last = false;
    std::int64_t asks = 0;  // bytes since the beginning that the sender asks for
    double latency = 0;     // s, of each link
  };

  struct Sender {
    std::int32_t port = 0;
    std::deque<std::int32_t> ready = {};  // flows, round robin
    double posted_until = 0;              // s: its messages
    bool scheduled = false;
  };

  struct Receiver {
    std::deque<std::int32_t> resending = {}, asking = {}, idle = {};  // flows, each round robin
    double spacing = 0;                                               // s between pulls
    double next_pull = 0;
    std::int32_t open = 0;  // flows that are not complete
    bool scheduled = false;
  };

  enum Kind : std::uint8_t { kArrive, kSend, kPull, kCredit, kTrimmed, kHeard, kResend, kDue };

  struct Ways {
    std::int32_t first = 0, count = 0, length = 0, back = 0;
  };
  Ways ways_of(const PacketFlow& flow, int salt, int packets);
  Ways new_ways(const PacketFlow& flow, int salt, int packets);
  int path_of(const PacketFlow& flow, std::uint64_t hash, int paths) const;
  std::int32_t route(int from, int to, int path, RailChange change);
  std::int32_t port_of(WireId wire);
  void attach(Outgoing& out, Incoming& in);
  void pace(const PacketFlow& given, Outgoing& flow, double now);
  void make_room(const Outgoing& flow);
  void fetch() const;
  void handle(const CalendarEvent& event);
  void queue_up(std::int32_t flow, double now);
  void pause(std::int32_t flow, double now);
  void send(std::int32_t sender, double now);
  void send_when_free(std::int32_t sender, double now);
  // s: headers and answers may keep a port busy for longer than the calendar reaches.
  double patience() const { return (transport_.queue / 2.0 + 2.0 * burst_) * transport_.packet * slowest_; }
  bool spend(Outgoing& flow);
  void emit(Outgoing& flow, std::int32_t index, Sender& sender, double now);
  void ask_for(Outgoing& flow);
  void hear(std::int32_t flow, double now);
  void arrive(std::int32_t packet, double now);
  void turn(Packet& packet, double now);
  int fill_of(const Port& port, double now) const;
  void trim(std::int32_t packet, double now);
  void deliver(std::int32_t packet, double now);
  void complete(const Packet& packet, double now);
  void trimmed(std::int32_t packet, double now);
  void ask(std::int32_t flow, std::int64_t bytes, double now);
  void wake(Receiver& receiver, std::int32_t index, double now);
  std::deque<std::int32_t>* next_to_pull(Receiver& receiver);
  void pull(std::int32_t receiver, double now);
  double control(std::int32_t first, std::int32_t ports, double latency, double now);
  bool has_more(const Outgoing& flow) const { return flow.resend > 0 || flow.sent < flow.packets; }
  bool may_try(const Outgoing& flow) const { return flow.credit + flow.unasked > 0 && has_more(flow); }
  std::int32_t next_way(Outgoing& flow);
  double full() const { return transport_.packet * burst_; }
  double bytes_of(const Packet& packet) const {
    return packet.last ? out_[packet.flow].last_bytes : transport_.packet * burst_;
  }
  double head_of(const Packet& packet) const { return std::min(bytes_of(packet), transport_.packet); }
  double header() const { return transport_.header * burst_; }

  const Fabric& fabric_;
  const PacketTransport transport_;
  const std::uint64_t seed_;
  const bool adaptive_;
  const int burst_;  // packets that stay together: what is called a packet below
  const int bursts_per_ack_;
  const std::int64_t window_, grant_;  // bytes
  std::vector<Port> ports_;
  std::array<std::vector<std::int32_t>, kNumWireKinds> port_ids_;  // by kind and index; -1: not in use
  std::vector<std::int32_t> hops_;
  std::vector<WireId> wires_;        // of the route at hand
  std::vector<std::int32_t> known_;  // of the flow at hand: routes by path
  std::vector<std::int32_t> ways_;   // first of `length` in hops_
  std::vector<Outgoing> out_;        // by flow
  std::vector<Incoming> in_;         // by flow
  std::vector<Sender> senders_;
  std::vector<Receiver> receivers_;
  std::map<std::int32_t, std::int32_t> sender_of_port_, receiver_of_port_;
  std::vector<Packet> packets_;
  std::vector<std::int32_t> free_;
  std::optional<Calendar> calendar_;
  std::map<std::array<std::int32_t, 6>, Ways> kept_ways_;  // by from, to, path, number, change of rail, port
  double slowest_ = 0, furthest_ = 0;                      // s per byte; s
  std::vector<Ended> ended_;
  std::int64_t open_ = 0;  // flows that are not complete
  std::int64_t resent_ = 0;
  std::uint64_t draws_ = 0;
};

}  // namespace moebius
