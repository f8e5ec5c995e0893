// Max-min sharing of wires among flow classes. Rates change only when a flow begins or ends or a wire's
// capacity changes, and only in the connected component of wires and flows that it touches; everything else
// keeps its finishing time. A flow takes no more than its most_rate. Between queues priority is strict: a
// wire serves the flows of a queue with what those of higher queues leave of it; a flow that is left nothing
// stands still until they end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hw/units.h"
#include "sim/event_queue.h"
#include "sim/network/transfer.h"

namespace moebius {

class WireTable;

class Wires {
 public:
  explicit Wires(const WireTable& table) : table_(table) {}

  // `flow` must live until it has finished; `id` orders flows that finish together. Returns the flow's slot.
  int start(const FlowClass& flow, std::uint64_t id, Time now);
  // From `now` on the wire has `share` of the capacity that it has in the table; 0: its flows stand still.
  void set_capacity(int wire, double share, Time now);
  // Bytes that crossed the wire so far, up to `now`.
  double carried(int wire, Time now) const;
  // Shares anew what was touched since the last call. To be called before next_event() and rate().
  void solve(Time now);
  Time next_event();
  // A flow that has finished by `now`, in the order of ids, or -1; its slot is free afterwards.
  int pop_finished(Time now);
  double rate(int flow) const { return flows_[flow].rate; }  // bytes per second, of each flow of the class
  int active() const { return active_; }

 private:
  struct Wire {
    std::vector<std::int32_t> flows;
    double share = 1;        // of the table's capacity
    double carried = 0;      // by flows that have finished
    double left = 0;         // while solving: capacity not yet given away
    double weight = 0;       // while solving: of the flows without a rate
    std::uint32_t seen = 0;  // number of the last solve that looked at it
    bool dirty = false;
  };
  struct Flow {
    const FlowClass* plan = nullptr;
    std::uint64_t id = 0;
    double bytes = 0;  // left at `since`
    double rate = 0;
    double new_rate = -1;  // while solving; negative: not yet known
    Time since;
    std::uint32_t version = 0;
    std::uint32_t seen = 0;
  };

  void touch(std::int32_t wire);
  void collect_component(std::int32_t wire);
  double capacity(std::int32_t wire) const;
  void share_out();
  void fill(const std::vector<std::int32_t>& flows);
  double least_share() const;
  std::size_t freeze_full_wires(double share, int queue);
  void freeze(std::int32_t flow, double rate);
  static double bytes_left(const Flow& flow, Time now);
  void apply(std::int32_t flow, Time now);

  const WireTable& table_;
  std::vector<Wire> wires_;
  std::vector<Flow> flows_;
  std::vector<std::int32_t> free_, dirty_;
  std::vector<std::int32_t> component_wires_, component_flows_;
  std::vector<std::int32_t> of_queue_;  // while solving: flows of the component in one queue, by most_rate
  EventQueue events_;
  std::uint32_t solve_number_ = 0;
  int active_ = 0;
};

}  // namespace moebius
