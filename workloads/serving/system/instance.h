// Attention replicas that go through iterations together, because they share experts: an iteration lasts as
// long as its slowest replica needs. One replica alone is the common case of a dense model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "workloads/serving/system/host_pipeline.h"
#include "workloads/serving/system/replica.h"
#include "workloads/serving/system/touched_set.h"

namespace moebius {

// On which replica of an instance a request goes.
enum class ReplicaBalance : std::uint8_t {
  kRoundRobin,
  kRequests,  // with the fewest requests
  kTokens,    // with the fewest tokens, of prompts to compute and of contexts to read
};

struct InstanceRules {
  ReplicaRules replica;
  int replicas = 1;
  ReplicaBalance balance = ReplicaBalance::kTokens;
  HostCosts host;
  double swap_seconds = 0;  // of a token's keys on their way to the host's memory, or back
  int load_layers = 1;      // of the model, when each begins as its own blocks are there; 1: when all are
  // Prompts wait until every replica has some, so that no rank computes prompts while others decode: at most
  // so many iterations (0: they do not), and not while a replica has nothing to decode. Then for
  // `gather_prompts` more, while all decode.
  std::int32_t await_prompts = 0, gather_prompts = 0;
  // Decoding sequences of a replica for which there is a graph, ascending: see captured_size(). None: nothing
  // is replayed, or nobody counts launches.
  std::vector<std::int32_t> captured;
  bool fills_graphs = true;     // up to the next of these sizes; else nothing but they themselves is replayed
  bool choose_experts = false;  // rows that fill a graph, too
};

// Sequences of the smallest captured graph that has room for so many; as many as they are where none has.
std::int64_t captured_size(const std::vector<std::int32_t>& captured, std::int64_t sequences);

// Whether an iteration of these replicas decodes beyond the graphs, so that its kernels are launched one by
// one. Replicas that share experts replay one size: the fullest must have a graph, and where nobody fills up,
// all must have as many sequences (SGLang, model_executor/cuda_graph_runner.py, can_run: the most of all
// ranks; TensorRT-LLM, _torch/pyexecutor: all ranks' batches are graphs of one size, or none is).
bool is_eager(const InstanceRules& rules, std::span<const StepShape> replicas);

class Instance {
 public:
  Instance(const InstanceRules& rules, StepCost* cost);  // null: time is what passes

  int size() const { return static_cast<int>(replicas_.size()); }
  Replica& replica(int index) { return replicas_[index]; }
  const Replica& replica(int index) const { return replicas_[index]; }
  bool busy() const { return busy_; }
  Time begun() const { return begun_; }  // where it was start()ed
  Time until() const { return until_; }  // the end of the iteration that goes on, or of the last one
  // How long it has had something to do without a pause; nothing where it has nothing to do.
  Time busy_for(Time now) const { return busy_ || !anew_ ? now - busy_since_ : Time{}; }

  // The replica for the next request by the balance; advances the turn of round robin.
  int choose();
  // Starts an iteration, unless one is going on or nothing can be done; returns its end.
  std::optional<Time> begin(Time now);
  // The same where its end is not known: whether one begins. ended() tells when it has, before end().
  bool start(Time now);
  void ended(Time now);
  // When the tokens of the iteration that was begun last are with those who asked: at its end or later.
  Time shown() const { return shown_; }
  // The loop takes a request in before its next iteration.
  void take_in(Time work) { host_.take_in(work); }
  // They are lanes of one pipeline: see HostLane.
  void share_loop(Instance& first) { host_.share_loop(first.host_); }
  // The iteration has ended: outcomes of replicas add up.
  void end(Time now, StepOutcome& outcome);

  const std::vector<StepShape>& shapes() const { return shapes_; }  // of the iteration under way
  const StepSums& sums() const { return sums_; }
  double balancedness() const { return cost_->balancedness(); }
  StepCost& cost() const { return *cost_; }    // forecasts are made from it
  const ReplicaLoad& load() const;             // of all replicas, added up
  std::int64_t load(ReplicaBalance by) const;  // the same: requests or tokens
  void watch(TouchMark mark);                  // set where load() may have changed, from here on
  // visit(replica) for those that the last decision was about; the others have nothing to do.
  template <class Visit>
  void visit_awake(Visit visit) const {
    awake_.visit([&](std::size_t i) { visit(replicas_[i]); });
  }

  struct Totals {
    std::int64_t iterations = 0, prefills = 0;  // with prompts in them
    std::int64_t eager = 0;                     // decoding beyond the graphs
    Time busy;                                  // of iterations
    Time stalled;                               // of that, for blocks from below and for room
    Time busy_with_prompts;                     // of that, by rows where an iteration has both
    double rows = 0;                            // computed by all replicas
    double slowest_rows = 0;  // of the replica that had most, times replicas: over `rows`, the imbalance
    StepStalls stalls;        // of iterations
    StepStalls waited;        // the same, times the sequences that they held up
    double padding = 0;       // of `rows`, computed in vain
  };
  const Totals& totals() const { return totals_; }
  const HostTotals& host() const { return host_.totals(); }

 private:
  void set_marks(TouchMark all);
  void refresh() const;
  bool ends_prompt() const;
  bool admits_prompts();
  std::int64_t plan(Time now, std::int64_t& prompts);
  Time behind_loads(Time now, Time device);
  HostWork host_work() const;
  void fill_graphs();
  void count_iteration(Time now);
  void count_busy(Time busy);
  void count_stalls(double seconds, std::int64_t sequences);

  InstanceRules rules_;
  StepCost* cost_;
  std::vector<Replica> replicas_;
  TouchedSet awake_;  // replicas that do not rest; the others' shapes are empty
  // What replicas have before them as it was when they changed last, and who has changed since.
  mutable TouchedSet changed_;
  mutable std::vector<ReplicaLoad> loads_;
  mutable std::vector<std::int64_t> before_;  // the same by the balance
  mutable ReplicaLoad load_;
  std::vector<StepShape> shapes_;
  StepSums sums_;  // of these
  bool host_takes_time_ = false;
  HostLane host_;
  Time shown_;
  bool busy_ = false;
  bool anew_ = true;  // no replica had anything left when the last iteration ended
  Time begun_, until_, busy_since_;
  int turn_ = 0;
  std::int32_t awaited_ = 0, gathered_ = 0;  // iterations
  Totals totals_;
};

// Requests or tokens that a replica has before it.
std::int64_t load_of(const ReplicaLoad& load, ReplicaBalance by);

}  // namespace moebius
