#include <algorithm>

#include "hw/error.h"
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
    Running& running = running_[transfer];
    running.step = &step;
    running.id = id;
    running.flows_left = 0;
    running.launched = false;
    running.slots.clear();
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

  std::vector<double> left(std::int32_t transfer, Time now) override {
    wires_.solve(now_);
    const Running& running = running_[transfer];
    std::vector<double> left(running.step->flows.size(), 1);
    for (std::size_t i = 0; i < running.slots.size(); ++i)
      left[i] = running.slots[i] < 0 ? 0 : wires_.left(running.slots[i], now);
    return left;
  }

  void replace(std::int32_t transfer, const Step& step, Time now) override {
    wires_.solve(now_);
    now_ = now;
    Running& running = running_[transfer];
    for (const std::int32_t slot : running.slots)
      if (slot >= 0) wires_.stop(slot, now);
    running.step = &step;
    if (!running.launched) return;
    launch_flows(transfer);
    CHECK(running.flows_left > 0, "a transfer goes on with nothing");
  }

  double carried(int wire) const override { return wires_.carried(wire, now_); }

  void advance(Time now, std::vector<std::int32_t>& ended) override {
    wires_.solve(now_);
    now_ = now;
    for (int flow = wires_.pop_finished(now); flow >= 0; flow = wires_.pop_finished(now)) {
      const std::int32_t transfer = transfer_of_flow_[flow];
      running_[transfer].slots[index_of_flow_[flow]] = -1;
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
    bool launched = false;            // the latency is over
    std::vector<std::int32_t> slots;  // by flow of the step; -1: over
  };

  void launch(std::int32_t transfer, std::vector<std::int32_t>& ended) {
    running_[transfer].launched = true;
    launch_flows(transfer);
    if (running_[transfer].flows_left == 0) ended.push_back(transfer);
  }

  void launch_flows(std::int32_t transfer) {
    Running& running = running_[transfer];
    running.flows_left = 0;
    running.slots.assign(running.step->flows.size(), -1);
    for (std::size_t i = 0; i < running.step->flows.size(); ++i) {
      const FlowClass& flow = running.step->flows[i];
      if (flow.bytes <= 0) continue;
      const int slot = wires_.start(flow, running.id, now_);
      if (transfer_of_flow_.size() <= static_cast<std::size_t>(slot)) {
        transfer_of_flow_.resize(slot + 1);
        index_of_flow_.resize(slot + 1);
      }
      transfer_of_flow_[slot] = transfer;
      index_of_flow_[slot] = static_cast<std::int32_t>(i);
      running.slots[i] = slot;
      ++running.flows_left;
    }
  }

  Wires wires_;
  EventQueue latencies_;
  std::vector<Running> running_;  // by transfer
  std::vector<std::int32_t> transfer_of_flow_, index_of_flow_;
  Time now_;
};

}  // namespace

std::unique_ptr<Network> make_fluid_network(const WireTable& wires) {
  return std::make_unique<FluidNetwork>(wires);
}

}  // namespace moebius
