// Max-min sharing of wires among flow classes. A flow takes no more than its most_rate. Between queues
// priority is strict: a wire serves the flows of a queue with what those of higher queues leave of it; a flow
// that is left nothing stands still until they end.
//
// The flows of one queue on one wire share a *level*: the rate at which they fill what the wire has for them,
// infinite where they do not fill it. A flow's rate is the lowest level on its way, or its most_rate. Rates
// change only when a flow begins or ends or a wire's capacity changes; then the levels that no longer fill
// their wires are set anew, the highest queue first and in a queue from the lowest level up (of the old and
// the new one). What a level does to others is above it, so that each is mostly set once, and only the flows
// whose rate changes are looked at, with the wires that they cross. Everything else keeps its rate and its
// finishing time.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "hw/units.h"
#include "sim/network/finish_heap.h"
#include "sim/network/transfer.h"

namespace moebius {

class WireTable;

class Wires {
 public:
  explicit Wires(const WireTable& table) : table_(table) {}

  // `flow` must live until it has finished; `id` orders flows that finish together. Returns the flow's slot.
  int start(const FlowClass& flow, std::uint64_t id, Time now);
  // From the next solve() on the wire has `share` of the capacity that it has in the table; 0: its flows
  // stand still.
  void set_capacity(int wire, double share);
  // Bytes that crossed the wire so far, up to `now`.
  double carried(int wire, Time now) const;
  // Shares anew what was touched since the last call. To be called before next_event() and rate().
  void solve(Time now) {
    if (!touched_.empty()) solve_anew(now);
  }
  Time next_event() const { return finishes_.empty() ? kForever : finishes_.top().time; }
  // A flow that has finished by `now`, in the order of ids, or -1; its slot is free afterwards.
  int pop_finished(Time now) { return next_event() > now ? -1 : pop_first(); }
  // Share of its bytes that a flow has before it at `now`.
  double left(int flow, Time now) const { return bytes_left(flow, now) / flows_[flow].plan->bytes; }
  // The flow ends here, with what it has left; its slot is free afterwards.
  void stop(int flow, Time now);
  double rate(int flow) const { return flows_[flow].rate; }  // bytes per second, of each flow of the class
  int active() const { return active_; }
  std::int64_t shared() const { return shared_; }  // flows whose rate changed, summed over all solves

 private:
  // With more flows than this at a time a level stands while it fills its wire to within kRough, so that one
  // flow's end is not felt by thousands: rates are then those of wires whose capacities are off by that much.
  static constexpr int kExactFlows = 4096;
  static constexpr double kRough = 1e-3;
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  struct Use {
    std::int32_t flow = 0;
    std::int32_t hop = 0;  // of the flow
    double weight = 1;
  };
  // The flows of one queue on one wire. Those whose rate is the level are held back `here`, and stand first;
  // the others, below the level, elsewhere. The level itself stands in levels_.
  struct Node {
    std::vector<Use> uses;
    std::int32_t wire = 0, queue = 0;
    std::int32_t higher = -1, lower = -1;  // the next queues on the wire
    std::int32_t num_here = 0;
    double weight = 0, weight_here = 0;
    double rate_below = 0;     // weight * rate of the flows below the level
    double highest_below = 0;  // none of those has a higher rate
    std::int32_t moves = 0;    // changes of rate_below since it was last summed
    double due = -1;           // it stands in due_ with this; negative: it does not
    bool touched = false;      // since due_ was last brought up to date
  };
  struct Wire {
    double share = 1;         // of the table's capacity
    double carried = 0;       // by flows that have finished
    std::int32_t first = -1;  // node of the highest queue
  };
  struct Hop {
    std::int32_t node = 0;
    std::int32_t place = 0;  // in the node's uses
    double weight = 1;
  };
  struct Flow {
    double rate = 0;        // since `since`
    std::vector<Hop> hops;  // as the plan's links
    bool changed = false;
    double most = kUnlimited;
    double bytes = 0;  // left at `since`
    Time since;
    const FlowClass* plan = nullptr;
    std::uint64_t id = 0;
  };
  // A level that may no longer fill its wire: not set before all that are due earlier.
  struct Due {
    std::int32_t queue = 0, node = 0;
    double level = 0;
    bool after(const Due& other) const;
  };

  double bytes_left(int flow, Time now) const;
  std::int32_t node_of(std::int32_t wire, std::int32_t queue);
  void touch(std::int32_t node);
  void solve_anew(Time now);
  int pop_first();
  void release(std::int32_t flow, double bytes);
  void swap_uses(Node& node, std::int32_t a, std::int32_t b);
  void move_here(Node& node, std::int32_t place);
  void move_below(Node& node, std::int32_t place, double rate);
  void leave_here(Node& node, std::int32_t place);
  double tolerance() const;
  static double below(const Node& node);
  double available(const Node& node) const;
  double estimate(std::int32_t node) const;
  void enter(std::int32_t node, double level);
  void enter_touched();
  void settle_next();
  double level_of(std::int32_t node, double from);
  double limit_elsewhere(std::int32_t flow, std::int32_t node) const;
  void set_level(std::int32_t node, double level);
  void raise(std::int32_t node, double level);
  void lower(std::int32_t node, double level);
  void change_rate(std::int32_t flow, std::int32_t of_node, double rate);
  void count_anew(std::int32_t node);
  void apply(std::int32_t flow, Time now);

  const WireTable& table_;
  std::vector<Wire> wires_;
  std::vector<Node> nodes_;
  std::vector<double> levels_;  // by node
  std::vector<Flow> flows_;
  std::vector<double> rates_;  // by flow; while solving ahead of Flow::rate
  std::vector<std::int32_t> free_, touched_;
  std::vector<Due> due_;                            // a heap
  std::vector<std::pair<double, double>> filling_;  // while a level is found: what limits a flow, its weight
  std::vector<std::int32_t> changed_flows_;         // since the last solve
  std::vector<FinishHeap::Entry> changed_;
  FinishHeap finishes_;
  double settled_ = -1;  // the level set last
  std::int64_t shared_ = 0;
  int active_ = 0;
};

}  // namespace moebius
