// The machine model: one representative of each rank class executes the class's submissions on its chip;
// communication goes over the network. A plain object without a clock of its own: a driver asks for the next
// event and advances to it. Time is in whole nanoseconds; what happens at one time happens network first,
// then chips, each in the order of ids, so that a run is the same whoever drives it.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/chips.h"
#include "sim/faults/chip_paces.h"
#include "sim/fragment_uses.h"
#include "sim/launches.h"
#include "sim/meetings.h"
#include "sim/network/network.h"
#include "sim/network/network_counters.h"
#include "sim/power_governor.h"
#include "workloads/schedule/executor.h"
#include "workloads/schedule/recorder.h"

namespace moebius {

struct MachineParts {
  const Cluster& cluster;
  const Layout& layout;
  std::vector<const CostSource*> costs;  // by pool
  Recorder& recorder;
  TransferPlans& plans;
  Network& network;
  NetworkCounters* counters = nullptr;              // who samples the network; null: no one
  ChipPaces* paces = nullptr;                       // of chips that become slow; null: none does
  const std::vector<ClockPower>* powers = nullptr;  // by pool; null: clocks stay full
};

class Machine {
 public:
  explicit Machine(MachineParts parts);

  Time now() const { return now_; }
  void submit(const Submission& submission);
  // kForever when nothing will happen by itself.
  Time next_event();
  // Goes to `to`, at most next_event(), and does all that happens then; returns the next_event() after it.
  Time advance(Time to);

  bool has_completions() const { return !completions_.empty(); }
  std::vector<Completion> take_completions();  // by time, then sequence
  std::int64_t outstanding() const { return outstanding_; }
  std::int64_t events() const { return events_; }  // ops and transfer steps that ended so far
  std::string describe_waiting() const;            // which ops wait for what, for the sentence of a deadlock
  double mean_clock() const;                       // of the chips, as a share of the full one (PowerGovernor)
  void forget_clocks();                            // see BoardClocks, also for those below
  bool repeat_clocks();
  double change_of_clocks() const;
  std::vector<BoardPast> pasts_of_clocks() const;  // by chip
  void begin_clocks(const std::vector<BoardPast>& pasts);

 private:
  struct OpState {
    Time ready;  // when the last dependency ended
    Time lag;    // see finish()
  };
  struct OpFollower {  // an op of a later submission that waits for op `before` of this one
    std::int32_t before, slot, op;
  };
  struct Live {  // a submission that has not completed
    FragmentUse* use = nullptr;
    ClassUse* as_class = nullptr;
    std::int32_t sequence = 0, rank_class = 0, step = 0, microbatch = 0, second_microbatch = -1;
    std::int32_t ops_left = 0;
    std::int32_t waits_for = 0;              // submissions
    std::vector<std::int32_t> dependencies;  // by op: those that have not ended; -1: it has ended itself
    std::vector<OpState> ops;
    std::vector<std::int32_t> followers;  // live submissions that wait for this one
    std::vector<OpFollower> op_followers;
  };
  // Live submissions with ops on a lane, in order. Most lanes of most ranks never have any, and one is in
  // no need of what a deque holds ready.
  struct LaneQueue {
    std::vector<std::int32_t> slots;
    std::size_t first = 0;
    bool empty() const { return first == slots.size(); }
    std::int32_t front() const { return slots[first]; }
    void push_back(std::int32_t slot) { slots.push_back(slot); }
    void pop_front();
  };
  struct LaneState {
    LaneQueue queue;
    std::int32_t cursor = 0;  // of the first in the queue: the next op
    bool busy = false;        // the op at the cursor has asked for cores, or runs
    std::int32_t op = 0, cores = 0;
    Time start, work_start, last_end, lag;
    const OpCost* cost = nullptr;  // compute only
    std::int16_t slowest = 0;      // communication only
    std::int32_t meeting = -1;     // communication that waits for cores to post, or posts: where it meets
    double clock = 1;              // at its start
  };

  struct Ready {
    std::uint64_t id;
    std::int32_t lane, op;
    auto operator<=>(const Ready&) const = default;
  };

  LaneState& lane_of(std::int32_t rank_class, Lane lane) {
    return lanes_[rank_class * kNumLanes + static_cast<int>(lane)];
  }
  Live& live_on(const LaneState& lane) { return live_[lane.queue.front()]; }
  const Op& op_on(const LaneState& lane) { return live_on(lane).use->fragment->ops[lane.op]; }
  const OpUse& use_on(const LaneState& lane) { return live_on(lane).use->ops[lane.op]; }
  static std::uint64_t id_of(std::int32_t sequence, std::int32_t op) {
    return static_cast<std::uint64_t>(sequence) << 24 | static_cast<std::uint64_t>(op);
  }
  std::uint64_t id_of(const LaneState& lane) { return id_of(live_on(lane).sequence, lane.op); }

  // Who holds a transfer's copying on a chip: below every lane, and not Chips::kNobody.
  static std::int32_t copy_for(std::int32_t meeting) { return -2 - meeting; }
  static std::int32_t meeting_of_copy(std::int32_t holder) { return -2 - holder; }
  // Who holds all cores for a transfer's lane while it posts: below every copy.
  static constexpr std::int32_t kPosting = -(1 << 30);
  static std::int32_t posting_for(std::int32_t lane) { return kPosting - lane; }

  std::int32_t new_live();
  void wait_for_launches(std::int32_t rank_class, std::int32_t slot);
  void launch(const Launches::Launched& launched);
  void wait_for(const std::vector<std::int32_t>& after, std::int32_t slot);
  void follow(const std::vector<Follow>& follows, std::int32_t slot);
  void end_dependency(Live& live, std::int32_t op, Time lag);
  void wake_class(std::int32_t rank_class);
  void offer(std::int32_t lane);
  bool is_next(const LaneState& lane, const Ready& ready);
  void start_ready();
  void hold(std::int32_t lane, int cores);
  void compute(std::int32_t lane);
  int units_of(const LaneState& lane);  // cores that the lane's op asks for, as Op::units
  double seconds_at_clock(LaneState& lane);
  void communicate(std::int32_t lane);
  void meet(std::int32_t lane);
  void send(std::int32_t lane);
  void receive(std::int32_t lane);
  SimulatedMeeting key_of(const LaneState& lane, const Op& op);
  void begin_transfer(std::int32_t meeting);
  void next_step(std::int32_t meeting);
  void copy_on_chips(std::int32_t meeting);
  void post_on_chips(std::int32_t meeting);
  void end_posting(std::int32_t lane);
  void post(std::int32_t lane, int cores);
  void end_work(std::int32_t holder);
  void end_part(std::int32_t meeting);
  void end_transfer(std::int32_t meeting);
  void draw(std::int32_t rank_class, const OpEnergy& energy, double clock, Time start);
  void draw_for_transfer(const LaneState& lane, const Live& live);
  void finish(std::int32_t lane);
  bool goes_on(std::int32_t lane, std::int32_t op) const;
  void report(const LaneState& lane, const Live& live);
  static Chips::Use use_of(const LaneState& lane, const Live& live);  // of the cores that its op holds
  void release_cores(LaneState& lane, const Live& live, Chips::Use use);
  void spread(std::int32_t rank_class);
  void complete(std::int32_t slot);

  const bool whole_chips_;     // ops hold all cores whatever they ask for: ranks are virtual
  bool chips_shared_ = false;  // several classes are on one chip
  const Layout& layout_;
  Recorder& recorder_;
  TransferPlans& plans_;
  Network& network_;
  NetworkCounters* counters_;
  ChipPaces* paces_;
  Launches launches_;
  FragmentUses uses_;
  Chips chips_;
  Meetings meetings_;
  std::vector<std::int32_t> chip_of_class_;
  std::vector<PowerGovernor> governors_;  // by chip; empty: clocks stay full
  std::vector<LaneState> lanes_;          // by class and lane
  std::vector<Live> live_;
  std::vector<std::int32_t> free_live_;
  std::deque<std::int32_t> live_of_sequence_;  // from first_open_ on; -1: completed
  std::int32_t first_open_ = 0;                // all sequences before it have completed
  std::vector<Ready> ready_;                   // a heap, the smallest id first
  std::vector<std::int32_t> ended_;
  std::vector<Chips::Grant> grants_;
  std::vector<Completion> completions_;
  std::int64_t outstanding_ = 0, events_ = 0;
  Time now_;
};

}  // namespace moebius
