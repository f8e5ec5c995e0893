// The course of a cluster's queues, event by event: who waits, who runs on which cards, who gives some back.
// Its parts are in queue_setup.cpp, queue_run.cpp (events), queue_booking.cpp, queue_pass.cpp (who gets
// cards), queue_reclaim.cpp (who gives them back), queue_links.cpp (who disturbs whom), queue_faults.cpp and
// queue_power.cpp.
#pragma once

#include <optional>
#include <queue>
#include <vector>

#include "workloads/cluster/job_progress.h"
#include "workloads/cluster/queue/card_map.h"
#include "workloads/cluster/queue/queue_course.h"
#include "workloads/routing/random_stream.h"

namespace moebius {

enum class RunStage : std::uint8_t {
  kOff,  // not there yet, not wanted, or over
  kWaiting,
  kStarting,
  kRunning,
  kSaving,     // before it is stopped or resized
  kDetecting,  // it is down, nobody knows
  kIsolating,
};

// A job, or one replica of a service: one thing that cards are given to.
struct QueuedRun {
  int job = 0, replica = 0, shape = 0, queue = 0;
  bool service = false;
  RunStage stage = RunStage::kOff;
  int asked = 0;            // index of the size
  int pool = -1, size = 0;  // while it holds cards
  int next_size = -1;       // kSaving: it goes on with that; -1: it is stopped
  std::vector<NodeCards> nodes = {};
  std::int64_t cards = 0;  // on `nodes`
  Time since = {}, waiting_since = {}, settled_since = {}, stage_end = {}, span_since = {};
  int version = 0;
  std::optional<JobProgress> progress = {};  // not of services
  Time work = {}, estimate = {};
  double reference = 1;  // seconds of a step as asked for; services: of a million tokens
  double disturbed = 1;  // by neighbours on shared links
  double slow = 1;       // by a slow node
  CardTime useful = 0;
  bool lost_memory = false, exchanged = false, was_running = false;
  int broken_nodes = 0;  // since it last ran
  bool claims = false;   // spares in their place, which another gives back
  bool bad =
      false;  // slow or silently wrong, not known yet; which node (-1: its own software), of which kind:
  int bad_node = -1, bad_kind = -1;
  int bad_version = 0;  // of the search for it: an older one is over
  Time wrong_from = {};

  bool holds() const { return stage != RunStage::kOff && stage != RunStage::kWaiting; }
};

class QueueRun {
 public:
  QueueRun(const QueueInputs& inputs, std::uint64_t load_seed, std::uint64_t fault_seed,
           const QueueListeners& listeners);
  QueueCourse run();

 private:
  using What = QueueEvent::What;
  struct Event {
    enum class What : std::uint8_t {
      kArrival,
      kHour,
      kLeave,
      kStage,
      kEnd,
      kFault,
      kTraced,
      kFound,
      kRepaired,
      kCap
    };
    Time time;
    std::int64_t order = 0;
    What what = What::kArrival;
    int subject = -1, version = 0;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  struct Costs {
    CheckpointCosts checkpoint;
    Time interval;
  };
  // Who waits first in a pool, and what others may not take from it.
  struct Reservation {
    bool set = false;
    Time until;                     // it can begin then
    std::int64_t extra = 0;         // cards that are left over even then
    const QueuedRun* by = nullptr;  // the first who keeps it
    std::int64_t wanted = 0;        // of all who have reserved
  };
  static constexpr int kNothing = -2;
  static constexpr int kEverybody = -1;  // instead of a queue
  struct Place {
    int pool = -1, size = 0;
  };
  struct ServedDemand {
    double replicas = 0;  // as they are at full speed; since:
    Time since = {};
  };

  // queue_setup.cpp
  void order_pools();
  void set_costs();
  void add_runs();
  void set_rates();

  // queue_run.cpp
  void push(Time time, Event::What what, int subject = -1, int version = 0);
  void tell(What what, const QueuedRun& run, int node = -1, int kind = -1);
  void take(const Event& event);
  void arrive(int job);
  void follow_demand(int job);
  void leave(int job);
  void wait(QueuedRun& run);
  void start(QueuedRun& run, Place place, bool again);
  void begin_stage(QueuedRun& run, RunStage stage, Time takes);
  void finish_stage(QueuedRun& run);
  void compute(QueuedRun& run);
  void finish(QueuedRun& run);
  void release(QueuedRun& run);
  void give_back_part(QueuedRun& run, std::int64_t keep);
  void set_speed(QueuedRun& run);
  double factor_of(const QueuedRun& run) const;
  double longer_of(const QueuedRun& run) const;
  void close_span(QueuedRun& run);
  double delay(const Delay& of);
  const Costs& costs_of(int shape, int pool, int size) const;
  std::int64_t cards_of(const QueuedRun& run, int size) const { return shape_of(run).sizes[size]; }
  const JobShape& shape_of(const QueuedRun& run) const { return in_.plan.shapes[run.shape]; }
  std::int64_t& used(int queue, int pool) { return used_[queue * in_.plan.pools.size() + pool]; }
  std::int64_t quota(int queue, int pool) const { return quota_[queue * in_.plan.pools.size() + pool]; }
  void hold(QueuedRun& run, std::int64_t cards, bool comes_back = false);
  void set_stage(QueuedRun& run, RunStage stage);
  int index_of(const QueuedRun& run) const { return static_cast<int>(&run - runs_.data()); }
  int end_of_runs(int job) const {
    return job + 1 < static_cast<int>(first_run_.size()) ? first_run_[job + 1]
                                                         : static_cast<int>(runs_.size());
  }

  // queue_booking.cpp
  void book(QueuedRun& run);
  void book_tokens(int job);
  void book_free();

  // queue_links.cpp
  void disturb_neighbours(int pool);
  std::vector<std::vector<LeafSender>> senders_of(int pool) const;

  // queue_pass.cpp
  void give_cards();
  void begin_round();
  void give_own(const std::vector<int>& order);
  void lend(const std::vector<int>& order);
  void keep_for(const QueuedRun& run, bool within);
  std::vector<int> in_order();
  bool try_start(QueuedRun& run, bool within);
  bool has_right(const QueuedRun& run);
  bool could_borrow(const QueuedRun& run);
  bool start_at(QueuedRun& run, int size, bool within);
  bool may_take(const QueuedRun& run, Place place, bool within);
  void reserve(const QueuedRun& run, bool within);
  Reservation& reserved_of(int queue, int pool);
  const std::vector<int>& pools_for(const QueuedRun& run, int size) const;
  int least_size(const QueuedRun& run) const;
  Time estimated_end(const QueuedRun& run) const;
  Time estimated_length(const QueuedRun& run, Place place) const;
  CardItem why_free(int pool);

  // queue_growth.cpp
  bool has_room(const QueuedRun& run, int next) const;
  int next_size(const QueuedRun& run);
  bool grow_one(int pool);
  bool could_be_larger(int pool) const;
  bool yields_to(const QueuedRun& run) const;
  void make_room(const QueuedRun& run);
  bool lends_spares_to(const QueuedRun& run) const;
  std::int64_t lost_cards(int pool, int queue) const;
  std::int64_t lent_cards(int pool) const;
  bool may_hold_spares(QueuedRun& run, const QueuedRun& owner);
  int size_without_spares(const QueuedRun& run) const;
  std::optional<Time> claim_spares(QueuedRun& owner, std::int64_t cards);

  // queue_reclaim.cpp
  void reclaim(QueuedRun& owner);
  bool kept_for_others(const QueuedRun& owner, Place place);
  bool reclaim_in(const QueuedRun& owner, Place place, bool by_right);
  std::int64_t borrowed_in(int pool, int but);
  std::int64_t given_up(const QueuedRun& run, int next) const;
  std::int64_t freed(const QueuedRun& run, int next, std::int64_t needed) const;
  int way_to_free(const QueuedRun& run, const QueuedRun& owner, std::int64_t missing);
  int way_to_yield(const QueuedRun& run, std::int64_t missing) const;
  void save_and(QueuedRun& run, int next_size);
  void forget_claims();

  // queue_faults.cpp
  void next_fault();
  void strike(int kind, int pool, int node);
  void strike_any(int kind);
  void strike_run(QueuedRun& run, int kind, int node, bool takes_node);
  void go_down(QueuedRun& run, int kind);
  void detected(QueuedRun& run);
  void found(QueuedRun& run);
  void replace_nodes(QueuedRun& run);
  void lose_work(QueuedRun& run, Time before);
  void lose_node(QueuedRun& run, int node);
  void lose_bad(QueuedRun& run);
  void lose_wrong(QueuedRun& run);
  void judge(QueuedRun& run);
  void save(QueuedRun& run);
  void take_down(int pool, int node, int kind);

  // queue_power.cpp
  void spend_power();
  void power_changed();
  double base_watts() const;
  double card_watts(int pool) const;
  double dynamic_watts(const QueuedRun& run) const;
  double cap_now() const;
  void begin_cap();
  bool cap_allows(int pool, std::int64_t more) const;
  bool held_by_cap(const QueuedRun& run);

  const QueueInputs& in_;
  const QueueListeners& listeners_;
  RandomStream random_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t order_ = 0;
  Time now_;
  std::vector<DrawnJob> jobs_;
  std::vector<QueuedRun> runs_;
  std::vector<int> first_run_;  // of a job; its replicas follow
  std::vector<char> there_;     // a service, by job; what it is asked for:
  std::vector<ServedDemand> demand_;
  std::vector<CardMap> maps_;
  std::vector<std::vector<int>> holders_;  // by pool: runs with cards there, ascending
  std::vector<int> waiting_;               // runs that wait, ascending
  std::vector<std::int64_t> used_, quota_;
  std::vector<Costs> costs_;
  std::vector<int> cost_first_, size_first_;
  std::vector<std::vector<int>> pool_order_;  // by shape and size: pools on which it runs, the best first
  std::vector<std::int64_t> going_;           // by queue: cards that are on their way back
  std::vector<Reservation> reserved_;
  std::vector<char> blocked_queue_;
  std::vector<std::int64_t> promised_;  // cards of a pool that who waits before will take
  std::vector<std::int64_t> no_room_;   // so many cards, by pool, elastic jobs cannot yield in this pass
  std::vector<std::int64_t> no_claim_;  // so many cards, by queue and pool, nobody has to give back as it is
  std::vector<CardItem> free_item_;
  Time free_since_;
  std::vector<double> rates_;  // an hour, by pool and kind; then of jobs, by kind
  double total_rate_ = 0;
  double clock_ = 1;
  double busy_watts_ = 0, watts_ = 0, cap_ = 0;
  double pass_cap_ = 0, pass_watts_ = 0;  // in a pass: the cap, and what who has cards draws when it computes
  bool cap_holds_ = false;                // somebody, in this pass
  Time power_since_;
  QueueCourse course_;
};

}  // namespace moebius
