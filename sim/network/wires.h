// Max-min sharing of wires among flow classes. A flow takes no more than its most_rate. Between queues
// priority is strict: a wire serves the flows of a queue with what those of higher queues leave of it; a flow
// that is left nothing stands still until they end.
//
// Rates change only when a flow begins or ends or a wire's capacity changes. Filling goes from level to
// level, the highest queue first and in a queue from the lowest rate up, so that a change at one level leaves
// all rates below it as they are: sharing starts again from that level, and only in the component of wires
// and flows above it that the change can reach. Everything else keeps its rate and its finishing time.
#pragma once

#include <cstdint>
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
    if (!dirty_.empty()) solve_anew(now);
  }
  Time next_event() const { return finishes_.empty() ? kForever : finishes_.top().time; }
  // A flow that has finished by `now`, in the order of ids, or -1; its slot is free afterwards.
  int pop_finished(Time now) { return next_event() > now ? -1 : pop_first(); }
  // Share of its bytes that a flow has before it at `now`.
  double left(int flow, Time now) const { return bytes_left(flows_[flow], now) / flows_[flow].plan->bytes; }
  // The flow ends here, with what it has left; its slot is free afterwards.
  void stop(int flow, Time now);
  double rate(int flow) const { return flows_[flow].rate; }  // bytes per second, of each flow of the class
  int active() const { return active_; }
  std::int64_t shared() const { return shared_; }  // flows that were given a rate so far, once a solve

 private:
  // Where in the filling a flow has its rate or a wire is full.
  struct Level {
    int queue = 0;
    double rate = 0;
    bool before(const Level& other) const {
      return queue != other.queue ? queue > other.queue : rate < other.rate;
    }
  };
  static constexpr Level kNever{-1, 0};

  // A flow on a wire. The uses of a wire stand in the order of levels, flows without a rate last.
  struct Use {
    std::int32_t flow = 0;
    std::int32_t hop = 0;  // of the flow
    double left = 0;       // capacity that the uses before this one leave
  };
  struct Wire {
    std::vector<Use> uses;
    double share = 1;        // of the table's capacity
    double carried = 0;      // by flows that have finished
    double left = 0;         // capacity that all uses leave; while solving: those with a rate
    double weight = 0;       // while solving: of the queue's flows without a rate
    std::int32_t fixed = 0;  // while solving: so many uses have their rate
    std::uint32_t seen = 0;  // number of the last solve that looked at it
    Level from = kNever;     // what was touched since the last solve: sharing starts again here
    bool dirty = false, gained = false, resized = false;
  };
  struct Hop {
    std::int32_t wire = 0;
    std::int32_t place = 0;  // in the wire's uses
    double weight = 1;
  };
  struct Flow {
    double rate = -1;       // negative: none yet
    double new_rate = -1;   // while solving; negative: not yet known
    std::vector<Hop> hops;  // as the plan's links
    std::uint32_t seen = 0;
    int queue = 0;
    double bytes = 0;  // left at `since`
    Time since;
    const FlowClass* plan = nullptr;
    std::uint64_t id = 0;
  };

  double capacity(std::int32_t wire) const;
  static double bytes_left(const Flow& flow, Time now);
  static Level level_of(const Flow& flow);
  void make_wires();
  void solve_anew(Time now);
  int pop_first();
  void touch(std::int32_t wire, Level from);
  void release(std::int32_t flow, double bytes);
  void remove_use(std::int32_t wire, std::int32_t place);
  void resize(std::int32_t wire);
  Level fills_at(std::int32_t wire) const;
  bool is_above(const Use& use, const Level& level) const;
  void collect_component(std::int32_t wire, Level from);
  void loosen(std::int32_t wire, const Level& from);
  void share_out();
  void weigh(const std::vector<std::int32_t>& flows);
  void fill(const std::vector<std::int32_t>& flows);
  std::int32_t next_full_wire();
  std::size_t freeze_users(std::int32_t wire, double rate, int queue);
  void freeze(std::int32_t flow, double rate);
  void apply(std::int32_t flow, Time now);

  const WireTable& table_;
  std::vector<Wire> wires_;
  std::vector<Flow> flows_;
  std::vector<std::int32_t> free_, dirty_;
  std::vector<std::int32_t> component_wires_, component_flows_;
  std::vector<std::int32_t> of_queue_;                    // while solving: the component's flows in one queue
  std::vector<std::pair<double, std::int32_t>> filling_;  // while solving: a heap of wires by their share
  std::vector<FinishHeap::Entry> changed_;
  FinishHeap finishes_;
  std::uint32_t solve_number_ = 0;
  std::int64_t shared_ = 0;
  int active_ = 0;
};

}  // namespace moebius
