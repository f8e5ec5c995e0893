// Which experts the tokens of an iteration choose, layer by layer. By popularity: a function of seed, layer,
// request and position, so that neither the batch nor the number of ranks changes what a request computes.
// Balanced: dealt over the tokens of the iteration, equal for all layers unless there are too few for every
// expert to be chosen: each layer then leaves out others. It is the ideal that a load balancer aims for, and
// what a token uses then depends on who shares the iteration.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "workloads/schedule/batch.h"
#include "workloads/serving/carried/prompt_book.h"
#include "workloads/serving/plan.h"
#include "workloads/training/layers/lowering.h"

namespace moebius {

class PopularityBook;

// Routes that were drawn lately: halves of an iteration, and stacks of more and of fewer layers, draw the
// same.
class DrawnRoutes {
 public:
  RoutePtr get(const RouteSpec& spec);

 private:
  static constexpr std::size_t kMost = 32;  // then the oldest goes
  std::vector<RoutePtr> routes_;
};

// Loads that slots have in place of the popularity: a token draws slots in proportion to these weights.
struct SlotDraw {
  // By layer, or by draw where layers take draws in turn; one alone: of all; none: tokens are dealt evenly.
  std::vector<ExpertWeights> weights;
  int draws = 0;                      // > 0: layers take so many draws in turn; 0: each has its own
  int groups = 1, active_groups = 1;  // of slots, between which a token chooses first
  // The weights speak of the slots of always-chosen experts, too: tokens draw these as the others. Else such
  // experts have the slots of even loads.
  bool draws_always = false;
  std::shared_ptr<DrawnRoutes> known = {};  // by these loads, where several iterations draw by them
};

// Rows that choose among experts dealt evenly: those of padding are all alike, and choose together what one
// of them chooses.
std::int32_t choosing_rows(const Batch& batch);
// Of tokens dealt evenly, too few for every expert to be chosen: which are left out is chance, and how many
// of them one rank has. Of each layer another draw, so that the iteration takes what it does on average.
void vary_by_layer(RouteSpec& spec);

class IterationRoutes {
 public:
  // `balanced`: those of others with the same experts, seed and plan, which this one adds to; null: its own.
  explicit IterationRoutes(const ServingJob& job, std::shared_ptr<RouteCache> balanced = nullptr);

  void draw(const SlotDraw* loads) {
    loads_ = loads;
  }  // of the next iterations; null: as the popularity says

  // What requests share, which outlives this; null: nothing.
  void use_prompts(const PromptBook* prompts) { prompts_ = prompts; }
  // What each of them chooses by, which outlives this; null: what the workload says.
  void use_popularities(const PopularityBook* book) { popularities_ = book; }
  // Where the experts of a layer stand in the next iterations; without: each in the slot of its number.
  using PlacedExperts = std::function<ExpertSlotsPtr(int layer)>;
  void use_places(PlacedExperts places) { places_ = std::move(places); }

  // Rows of padding choose experts each for itself, so that every row that travels has its place: for
  // executors.
  void place_padding() { places_padding_ = true; }

  void begin(const std::vector<BatchPtr>& batches);  // by replica
  // Of the group of ranks whose tokens choose together. Of a replica of several ranks, each is the whole.
  RoutePtr get(int group, int layer);
  // Of the ranks of that group, the most that one has.
  std::int64_t longest(int group) const;

 private:
  const Batch& batch_of(int group, int member) const;  // that this member of the group sends to experts
  ExpertSharing sharing(int group) const;
  int members(int group) const;  // of a group, whose tokens are not those of another
  int source_of(int member) const;
  std::int32_t rows_of(int group, const Batch& batch) const;  // that choose among experts dealt evenly
  // Of a member's rows, those that cut_rows() repeats where the ranks of a replica do not divide its rows.
  std::int32_t repeated_rows(int group, int member) const;
  TokenRuns runs_of(int group) const;
  int popularity_of(std::int32_t name) const;  // index into versions_
  void find_versions();
  void add_runs(int source, const BatchSequence& sequence, std::vector<TokenRun>& runs) const;
  TokenRuns counted_runs(int group, int& most) const;
  RouteSpec spec_of(int group, int layer);
  RoutePtr drawn(int group, int layer);

  const ServingJob& job_;
  std::vector<BatchPtr> batches_;                   // by replica
  std::vector<BatchPtr> cut_;                       // by rank, where ranks of a replica have a share each
  std::vector<bool> decodes_;                       // by replica
  std::map<int, std::pair<TokenRuns, int>> runs_;   // by group: with the most tokens of a rank
  std::map<std::pair<int, int>, RoutePtr> routes_;  // of this iteration, by group and layer
  std::shared_ptr<RouteCache> balanced_;
  PopularityCourse course_;
  const SlotDraw* loads_ = nullptr;
  const PromptBook* prompts_ = nullptr;
  const PopularityBook* popularities_ = nullptr;
  ExpertSlotsPtr even_slots_;
  std::vector<int> versions_;  // of the popularity that this iteration's tokens choose by
  PlacedExperts places_;
  bool places_padding_ = false;
};

}  // namespace moebius
