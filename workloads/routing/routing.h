// Which experts the tokens of one expert-parallel group choose in one layer: drawn once from a counter-based generator,
// so that the simulator's bytes and loads and the real executors' data are the same tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "workloads/routing/popularity.h"

namespace moebius {

// A counter-based generator: the same key gives the same number, in any order (SplitMix64 finaliser over the parts).
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0, std::uint64_t d = 0);
double random_unit(std::uint64_t bits);  // [0, 1), 53 bits

// Consecutive tokens of one request on one source rank.
struct TokenRun {
  std::int32_t source = 0, request = 0;
  std::int32_t first = 0, count = 0;  // positions [first, first + count) of the request
  std::int32_t popularity = 0;        // by which they choose: index into RouteSpec::popularities, where there are any
  bool operator==(const TokenRun&) const = default;
};

// Runs by source, ascending; shared by the routes of all layers.
class TokenRuns {
 public:
  TokenRuns() = default;
  explicit TokenRuns(std::vector<TokenRun> runs)
      : runs_(std::make_shared<const std::vector<TokenRun>>(std::move(runs))) {}
  const std::vector<TokenRun>& list() const {
    static const std::vector<TokenRun> kNone;
    return runs_ ? *runs_ : kNone;
  }
  bool empty() const { return list().empty(); }
  bool operator==(const TokenRuns& other) const { return runs_ == other.runs_ || list() == other.list(); }

 private:
  std::shared_ptr<const std::vector<TokenRun>> runs_;
};

// Where the experts of a layer stand that have slots of their own, some of them several. Slots are spread over the ranks that
// hold experts as experts are that have one each.
struct ExpertSlots {
  std::vector<std::int32_t> expert_of_slot;
  std::vector<double> shares;  // of the tokens of its expert that a slot takes: those of one expert add up to 1
  bool operator==(const ExpertSlots&) const = default;
};

// Shared by the routes of a layer. Equal contents are equal. None: an expert is its slot.
class ExpertSlotsPtr {
 public:
  ExpertSlotsPtr() = default;
  explicit ExpertSlotsPtr(ExpertSlots slots) : slots_(std::make_shared<const ExpertSlots>(std::move(slots))) {}
  explicit operator bool() const { return slots_ != nullptr; }
  const ExpertSlots& operator*() const { return *slots_; }
  const ExpertSlots* operator->() const { return slots_.get(); }
  bool operator==(const ExpertSlotsPtr& other) const {
    return slots_ == other.slots_ || (slots_ && other.slots_ && *slots_ == *other.slots_);
  }

 private:
  std::shared_ptr<const ExpertSlots> slots_;
};

// The expert of an entry of Route::choices(), whether it took the token or dropped it.
constexpr std::int32_t chosen_expert(std::int32_t choice) { return choice < 0 ? -1 - choice : choice; }

struct RouteSpec {
  std::uint64_t seed = 1;
  int step = 0;
  int microbatch = -1;         // -1: the draw does not depend on it
  int layer = 0;
  Popularity popularity = {};
  ExpertWeights weights = {};  // of this layer and step, where the popularity alone does not say it (PopularityCourse)
  int ranks = 1;               // of the expert-parallel group
  int ranks_per_node = 1;      // consecutive members share a node
  int experts = 0;             // over all ranks; of n holders the r-th has [r*experts/n, (r+1)*experts/n)
  int active = 0;              // top-k
  // Of `active`: every token uses each of the last so many experts, and chooses the others among the rest, of which alone
  // groups and weights speak. Where these stand in several slots, tokens take them in turn, or that on their source's own rank.
  int always = 0;
  bool always_at_home = false;
  int groups = 1;              // group-limited choice: experts stand in so many groups ...
  int active_groups = 1;       // ... and a token uses at most so many of them
  int tokens = 0;              // of each source rank; with runs: of the one that has most
  int capacity = 0;            // most copies from one source to one expert, later tokens' are dropped; 0: no limit
  int capacity_groups = 1;     // equal runs of a source's tokens, each with a capacity of its own
  // Sources send `capacity` rows of each group to each expert, whoever was chosen: what no token takes is
  // padding. All counts of rows are those of the full buffers, and so are those of tokens wherever several
  // ranks exchange them.
  bool filled = false;
  // Groups of sources that choose alike and whose tokens are gathered where the experts are: counts of rows and of received
  // tokens are those of all of them. Nothing is dispatched by such a route.
  int gathered = 1;
  // Serving: which tokens the sources have, each its own number. Drawn by popularity, what a token chooses is a function of
  // seed, layer, request and position alone, whoever shares its batch; step and microbatch do not count then.
  TokenRuns runs = {};
  // Attention and experts apart: so many leading ranks have the tokens and no experts, the others hold the experts and have
  // no tokens; the two parts share no node. 0: every rank has both.
  int without_experts = 0;
  int holders_per_node = 0;    // of the others, consecutive ones share a node; 0: as ranks_per_node
  // Serving, where popularity changes while requests come: those by which the runs' tokens choose, in place of `weights`.
  std::vector<ExpertWeights> popularities = {};
  // Tokens choose experts; which of an expert's slots computes one is drawn by the slots' shares. None: an expert is its slot.
  ExpertSlotsPtr placed = {};

  bool operator==(const RouteSpec&) const = default;
  int holders() const { return ranks - without_experts; }
  int slots() const { return placed ? static_cast<int>(placed->expert_of_slot.size()) : experts; }
};

// Balanced: groups, and the experts of each group, are dealt like cards from shuffled decks through all tokens of
// all sources. Every token uses exactly active_groups groups with active/active_groups experts each (the whole numbers
// around it where that is not whole). Experts of a group get equally many copies, to within one; so do all experts
// when the tokens of all sources are a multiple of the groups, and two or three apart otherwise. Or drawn by popularity
// without replacement, groups first, then experts of these groups (workloads/routing/routing_draw.h). A token's experts are
// distinct.
class Route {
 public:
  explicit Route(const RouteSpec& spec);

  const RouteSpec& spec() const { return spec_; }
  int tokens_of(int source) const { return tokens_of_[source]; }
  int experts_per_rank() const { return spec_.slots() / spec_.holders(); }  // of a rank that holds any
  // Experts by slot from here on. The first one of a rank, below 0 where it holds none; the rank that holds one.
  int first_expert(int rank) const { return (rank - spec_.without_experts) * experts_per_rank(); }
  int holder(int expert) const { return spec_.without_experts + expert / experts_per_rank(); }
  int nodes() const { return first_node_of_holders() + (spec_.holders() + holder_width() - 1) / holder_width(); }
  int node_of(int rank) const;
  int first_of_node(int node) const;  // rank
  int end_of_node(int node) const { return node + 1 < nodes() ? first_of_node(node + 1) : spec_.ranks; }

  // Token copies that arrive at an expert of rank `rank` (local index), from all sources.
  int rows(int rank, int local_expert) const {
    return rank < spec_.without_experts ? 0 : rows_[first_expert(rank) + local_expert];
  }
  int rows_of_rank(int rank) const { return rows_of_rank_[rank]; }       // over its experts
  int max_rows_of_rank() const;
  int tokens_between(int source, int destination) const { return between_[source * spec_.ranks + destination]; }  // distinct
  int received_tokens(int rank) const { return received_[rank]; }        // distinct per source, from all sources, itself included
  int max_received_tokens() const;
  int sent_tokens(int source) const { return sent_[source]; }            // distinct per destination, to all of them, itself included
  int tokens_to_node(int source, int node) const { return to_node_[source * nodes() + node]; }  // distinct

  std::int64_t dropped() const { return dropped_; }  // copies over capacity, of all sources; not counted above
  std::int64_t padding() const { return padding_; }  // rows of all experts that no token takes; counted above

  // The choices of one source: tokens*active expert ids, ascending within a token; an expert that dropped the token
  // is there as -1 - id. Recomputed, not stored.
  std::vector<std::int32_t> choices(int source) const;
  // The slots that compute them, in the same order; empty where experts are their slots.
  std::vector<std::int32_t> chosen_slots(int source) const;
  // Copies by expert, whatever slots they went to.
  std::vector<std::int32_t> copies_of_experts() const;

 private:
  struct Draw;
  void fill_buffers();
  void sum_up();
  int holder_width() const { return spec_.holders_per_node > 0 ? spec_.holders_per_node : spec_.ranks_per_node; }
  int first_node_of_holders() const {
    return (spec_.without_experts + spec_.ranks_per_node - 1) / spec_.ranks_per_node;
  }

  RouteSpec spec_;
  std::shared_ptr<const Draw> draw_;     // how the choices come again
  std::vector<std::int32_t> tokens_of_;
  std::vector<std::int32_t> rows_, between_, to_node_;
  std::vector<std::int32_t> rows_of_rank_, received_, sent_;
  std::int64_t dropped_ = 0, padding_ = 0;
};

using RoutePtr = std::shared_ptr<const Route>;

}  // namespace moebius
