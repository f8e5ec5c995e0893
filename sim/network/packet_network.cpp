// Transfers as packets under a receiver-driven transport: see packet_flows.h. Every message of a step is a
// flow of its own, or a flow for each port of its NICs where it is sprayed over them; equal messages between
// the same devices take the same paths every time, as queue pairs do.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/event_queue.h"
#include "sim/network/network.h"
#include "sim/network/packet_run.h"

namespace moebius {
namespace {

constexpr std::int64_t kMostMessages = 1 << 22;  // in one run: each is remembered

RailChange change_of(const PairFlow& pair) {
  return pair.climbs ? RailChange::kAtSpine : RailChange::kInNode;
}

class PacketNetwork : public Network {
 public:
  PacketNetwork(const Fabric& fabric, std::uint64_t seed, PacketCounts* counts)
      : fabric_(fabric),
        transport_(fabric.spec().transport),
        run_(fabric, transport_, seed, 1),
        counts_(counts) {}

  void start(std::int32_t transfer, const Step& step, std::uint64_t id, Time now) override {
    if (!step.flows.empty() && step.flows.front().queue > 0) {
      throw run_error(
          fmt::format("the packet network has one queue, a message at {} goes into queue {}: use fluid",
                      to_text(now), step.flows.front().queue));
    }
    if (running_.size() <= static_cast<std::size_t>(transfer)) running_.resize(transfer + 1);
    running_[transfer] = {&step, id, 0};
    double own = 0;  // that the messages pay themselves
    for (const PairFlow& pair : step.pairs)
      own = std::max(own, fabric_.latency(pair.from, pair.to, change_of(pair)).seconds());
    delays_.push({later(now, std::max(0.0, step.latency - own)), id, transfer, 0});
  }

  Time next_event() override {
    Time next = kForever;
    if (!delays_.empty()) next = delays_.top().time;
    if (!arrivals_.empty()) next = std::min(next, arrivals_.top().time);
    // To the end of the next bucket of packets.
    if (run_.busy())
      next = std::min(next, std::max(now_ + Time{1}, later({}, run_.next_time() + run_.step())));
    return next;
  }

  void set_capacity(int, double, Time) override {
    throw run_error("the packet network has ports and no wires, so that none of them can change: use fluid");
  }

  double carried(int) const override {
    throw run_error(
        "the packet network has ports and no wires, so that it counts no bytes on them: use fluid");
  }

  void advance(Time now, std::vector<std::int32_t>& ended) override {
    now_ = now;
    if (run_.busy()) run_.advance(now.seconds());
    for (const PacketRun::Ended& flow : run_.ended()) {
      const std::int32_t transfer = transfer_of_flow_[flow.flow];
      arrivals_.push({std::max(now, later({}, flow.arrived)), running_[transfer].id, transfer, 0});
    }
    run_.ended().clear();
    if (counts_) counts_->resent = run_.resent();
    for (; !arrivals_.empty() && arrivals_.top().time <= now; arrivals_.pop()) {
      const std::int32_t transfer = arrivals_.top().slot;
      if (--running_[transfer].messages_left == 0) ended.push_back(transfer);
    }
    for (; !delays_.empty() && delays_.top().time <= now; delays_.pop()) launch(delays_.top().slot, ended);
  }

 private:
  struct Running {
    const Step* step = nullptr;
    std::uint64_t id = 0;
    int messages_left = 0;
  };

  void launch(std::int32_t transfer, std::vector<std::int32_t>& ended) {
    Running& running = running_[transfer];
    for (const PairFlow& pair : running.step->pairs) {
      if (pair.bytes <= 0 || pair.from == pair.to) continue;
      const int ports = ports_of(pair);
      for (int port = 0; port < ports; ++port) launch(pair, ports, port, transfer);
    }
    if (running.messages_left == 0) ended.push_back(transfer);
  }

  // Of a NIC, that a message leaves by at once: a flow has a port at either end, that sends or pulls for it.
  int ports_of(const PairFlow& pair) const {
    const bool apart = fabric_.node_of(pair.from) != fabric_.node_of(pair.to);
    return apart && pair.path < 0 ? fabric_.spec().nic_ports : 1;
  }

  // What goes by one of so many ports, each of which waits until the NIC has posted the message.
  void launch(const PairFlow& pair, int ports, int port, std::int32_t transfer) {
    if (std::ssize(transfer_of_flow_) == kMostMessages)
      throw run_error(
          fmt::format("the packet network carries at most {} messages in a run, this one needs more "
                      "at {}: use fluid",
                      kMostMessages, to_text(now_)));
    const double bytes = std::ceil(pair.bytes / ports);
    run_.add({pair.from, pair.to, bytes, pair.path, pair.most_rate / ports, pair.messages, change_of(pair),
              ports > 1 ? port : -1},
             -1, now_.seconds());
    if (counts_) counts_->packets += static_cast<std::int64_t>(std::ceil(bytes / transport_.payload()));
    transfer_of_flow_.push_back(transfer);
    ++running_[transfer].messages_left;
  }

  const Fabric& fabric_;
  const PacketTransport transport_;
  PacketRun run_;
  PacketCounts* counts_;
  EventQueue delays_;                           // what the messages' own latencies do not cover
  EventQueue arrivals_;                         // of messages' last bytes
  std::vector<Running> running_;                // by transfer
  std::vector<std::int32_t> transfer_of_flow_;  // of the packet run
  Time now_;
};

}  // namespace

std::unique_ptr<Network> make_packet_network(const Fabric& fabric, std::uint64_t seed, PacketCounts* counts) {
  if (fabric.spec().transport.ideal)
    throw run_error(
        "the packet network needs to know what a packet is, but the fabric's transport is \"ideal\": name "
        "\"transport\": \"eqds\", or use fluid");
  if (!fabric.spec().by_host.empty())
    throw run_error(
        "packet by packet, messages go from device to device, but some here go through host memory: use "
        "fluid, or \"forwarding\": \"rdma\"");
  return std::make_unique<PacketNetwork>(fabric, seed, counts);
}

}  // namespace moebius
