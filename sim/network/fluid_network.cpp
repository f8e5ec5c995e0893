#include <algorithm>

#include "sim/event_queue.h"
#include "sim/network/network.h"
#include "sim/network/wires.h"

namespace moebius {
namespace {

// A step waits for its latency and then for its last flow.
class FluidNetwork : public Network {
 public:
  explicit FluidNetwork(const WireTable& table) : wires_(table) {}

  void start(std::int32_t transfer, const Step& step, std::uint64_t id, Time now) override {
    if (running_.size() <= static_cast<std::size_t>(transfer)) running_.resize(transfer + 1);
    running_[transfer] = {&step, id, 0};
    latencies_.push({later(now, step.latency), id, transfer, 0});
  }

  Time next_event() override {
    wires_.solve(now_);
    const Time latency = latencies_.empty() ? kForever : latencies_.top().time;
    return std::min(latency, wires_.next_event());
  }

  void set_capacity(int wire, double share, Time now) override {
    wires_.solve(now_);
    now_ = now;
    wires_.set_capacity(wire, share);
  }

  double carried(int wire) const override { return wires_.carried(wire, now_); }

  void advance(Time now, std::vector<std::int32_t>& ended) override {
    wires_.solve(now_);
    now_ = now;
    for (int flow = wires_.pop_finished(now); flow >= 0; flow = wires_.pop_finished(now)) {
      const std::int32_t transfer = transfer_of_flow_[flow];
      if (--running_[transfer].flows_left == 0) ended.push_back(transfer);
    }
    for (; !latencies_.empty() && latencies_.top().time <= now; latencies_.pop())
      launch(latencies_.top().slot, ended);
  }

 private:
  struct Running {
    const Step* step = nullptr;
    std::uint64_t id = 0;
    int flows_left = 0;
  };

  void launch(std::int32_t transfer, std::vector<std::int32_t>& ended) {
    Running& running = running_[transfer];
    for (const FlowClass& flow : running.step->flows) {
      if (flow.bytes <= 0) continue;
      const int slot = wires_.start(flow, running.id, now_);
      if (transfer_of_flow_.size() <= static_cast<std::size_t>(slot)) transfer_of_flow_.resize(slot + 1);
      transfer_of_flow_[slot] = transfer;
      ++running.flows_left;
    }
    if (running.flows_left == 0) ended.push_back(transfer);
  }

  Wires wires_;
  EventQueue latencies_;
  std::vector<Running> running_;  // by transfer
  std::vector<std::int32_t> transfer_of_flow_;
  Time now_;
};

}  // namespace

std::unique_ptr<Network> make_fluid_network(const WireTable& wires) {
  return std::make_unique<FluidNetwork>(wires);
}

}  // namespace moebius
