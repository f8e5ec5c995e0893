// The experts of one instance while its service runs: where they stand, how its ranks are loaded, what is
// counted of the tokens that it routed, when they are placed anew and which weights move for that.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/balancing/balance_plan.h"
#include "workloads/serving/balancing/expert_course.h"
#include "workloads/serving/balancing/expert_moves.h"
#include "workloads/serving/balancing/greedy_placement.h"

namespace moebius {

// Between how many runs of slots a token chooses first, and how many of them it uses; 1 and 1: between all
// slots.
struct GroupedChoice {
  int groups = 1, active = 1;
};

struct BalancerShape {
  int ranks = 1, ranks_per_node = 1;
  int slots = 0;            // of a layer
  GroupedChoice groups;     // of experts, as the model has them
  int always = 0;           // experts behind those of the course, which every token uses
  double expert_bytes = 0;  // on a rank
  int cut_over = 1;         // ranks of the group, each of which has such a part of an expert
  std::uint64_t seed = 1;   // of what counting misses
};

// Whether groups of experts stay on one node: they divide over the nodes, and the policy does not mix them.
bool keeps_groups(const ExpertBalancePlan& plan, const BalancerShape& shape, int experts);
// Of slots: experts in their own order stand group by group. Placed by groups, whole groups stand on each
// node: a token that uses so many of them uses so many nodes, on average. Otherwise groups stand anywhere.
GroupedChoice choice_of(const ExpertBalancePlan& plan, const BalancerShape& shape, int experts);

// One placement anew, or what is left of one when the service ends.
struct Rebalance {
  Time at;
  double before = 1, after = 1;  // balancedness (mean over most) of its layers, mean
  std::int64_t moves = 0;        // experts that ranks got
  double bytes = 0;
  double slowed = 0;  // seconds by which iterations were longer beside the moves
  Time done;          // when the last layer had its new places; zero: not yet
};

class ExpertBalancer {
 public:
  ExpertBalancer(const ExpertBalancePlan& plan, const BalancerShape& shape, const ExpertCourse& course);

  // Before an iteration that begins at `now`; the course stands there already.
  void advance(Time now, const MoveWorth& worth);
  void count(std::int64_t tokens);  // that the iteration routes; what they choose is drawn
  // The same where that is known: copies by layer and expert.
  void count(std::int64_t tokens, std::span<const double> copies);

  // Of the ranks, by layer; by the popularity of the moment. They change with the version.
  const std::vector<double>& imbalances() const { return imbalances_; }
  std::uint64_t version() const { return version_; }
  const SlotExperts& places(int layer) const { return places_[layer]; }
  // Loads of a layer's slots: that a token uses it.
  std::vector<double> slot_loads(int layer) const;

  // What moves beside the iteration that begins; empty: nothing. done() when the iteration has been timed:
  // the layers have their new places from the next one on.
  const std::vector<ExpertMove>& slice();
  ExpertTransfer slice_transfer() const;             // of that slice
  bool moving() const { return slice_layers_ > 0; }  // something has new places after this iteration
  void slice_done(Time end, double slowed);

  const std::vector<Rebalance>& rebalances() const { return rebalances_; }
  std::int64_t more_rebalances() const { return more_; }  // than are kept
  void finish() { flush(flushed_); }                      // what was counted last, too
  // Of all iterations so far: copies by layer and expert as counted.
  const std::vector<double>& copies() const { return copies_; }
  double tokens() const { return tokens_; }
  double imbalance_now() const { return mean_; }  // over layers, mean
  double mean_imbalance() const;                  // over layers, weighted by tokens
  static constexpr std::size_t kMostRebalances = 4096;

 private:
  struct Bin {
    Time begin;                 // of what is counted in it; it ends where the next one begins
    std::vector<float> copies;  // by layer and expert
  };
  struct Pending {
    int layer = 0;
    Rearrangement change;
  };
  int experts() const { return course_.experts() + shape_.always; }
  std::vector<double> chances(int layer) const;
  void place_first();
  SlotExperts placed(const std::vector<double>& loads) const;
  void rebalance_layer(int layer, const MoveWorth& worth, Rebalance& of);
  void settle();  // imbalances from the popularity of the moment
  void changed();
  double imbalance(int layer, const SlotExperts& slots) const;
  void count_tokens(std::int64_t tokens);
  void draw_copies();    // of counted tokens
  void flush(Time now);  // counted tokens become copies
  std::vector<double> window_loads(int layer) const;
  void rebalance(Time now, const MoveWorth& worth);

  ExpertBalancePlan plan_;
  BalancerShape shape_;
  const ExpertCourse& course_;
  std::vector<SlotExperts> places_;  // by layer
  std::vector<double> imbalances_;
  std::uint64_t version_ = 0, course_version_ = 0;
  std::int64_t counted_ = 0, flushes_ = 0;
  std::vector<double> chances_counted_;  // popularity when they were counted, by layer and expert
  std::deque<Bin> bins_;
  std::vector<double> copies_, seen_;  // of all; of those not in a bin yet, none: no tokens
  double tokens_ = 0, imbalance_tokens_ = 0, mean_ = 1;
  Time next_, flushed_;
  std::deque<Pending> pending_;
  std::vector<ExpertMove> slice_;
  std::size_t slice_layers_ = 0;
  std::vector<Rebalance> rebalances_;
  std::int64_t more_ = 0;
};

}  // namespace moebius
