// How a model is served on one pool of devices, and what it is asked: plain data that the scenario reader
// checks. A pool does prefill and decode, iteration by iteration, or one of both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "hw/dtype.h"
#include "models/model.h"
#include "workloads/schedule/batch.h"
#include "workloads/schedule/fragment.h"
#include "workloads/serving/sampling.h"
#include "workloads/training/plan.h"

namespace moebius {

// Attention on the first ranks of an instance, experts on others after them. Microbatches of an iteration go
// to and fro between the two, so that neither waits while some of them travel.
struct SeparateExperts {
  int ranks = 0;         // that hold the experts; 0: they stand with attention
  int microbatches = 1;  // of an iteration
  int first_device = 0;  // on which the first of the ranks stands, as their devices follow each other
  int ranks_per_node = 1;
};

// What goes on at once in the iterations of a phase.
struct PhaseOverlap {
  bool two_batch = false;       // two half batches, one's tokens travelling while the other computes
  int communication_cores = 0;  // that dispatch and combine hold meanwhile; 0: none
  bool operator==(const PhaseOverlap&) const = default;
};

// What a rank attends with where ranks cut prompts: all heads of its own tokens, or its share of the heads
// with all tokens (cut_prompts.h).
enum class CutAttention : std::uint8_t { kTokens, kHeads };

// How the ranks of an instance share the experts of a layer, by what brings tokens to them.
enum class ExpertSharing : std::uint8_t {
  kAlone,      // nothing: each rank has all experts, whole, for its own tokens
  kAllReduce,  // ranks of one replica, each with all its tokens, have some of the experts or columns of each:
               // the all-reduce behind its tensor-parallel layers joins the parts
  kDispatch,   // a token's row is sent to the ranks of its experts, which have them whole, and combined
  kGather,     // ranks of several replicas gather all their tokens, each with columns of experts: a
               // reduce-scatter brings the sums back
};

// Where shared experts are computed (shared_experts.h).
enum class SharedExperts : std::uint8_t {
  kSeparate,  // each rank computes them for its own tokens, in products of their own
  kFused,     // each rank for its own tokens, in the grouped products of the routed ones
  kRouted,    // on ranks where they are placed, as routed experts that every token chooses
};

// Of ServingPlan::captured: graphs have no end.
inline constexpr int kAllCaptured = std::numeric_limits<int>::max();

struct ServingPlan {
  int dp = 1;  // ranks of attention with rows of their own, each of tp: `cp` for a replica with its requests
  int tp = 1;  // which cut the heads of a replica
  int cp = 1;  // which cut its prompts; with tp 1, where prompts are computed alone; simulated only
  // Ranks over which the experts of a layer are spread, and those that share each expert by columns; 0: what
  // `ep` leaves of tp, or 1. Where both together are more than tp, they are of several replicas.
  int ep = 1, expert_tp = 0;
  // Runs of layers, each on ranks of its own, one behind the other; simulated only. The plan is that of every
  // stage; where one is lowered, it says which.
  int pp = 1, stage = 0;
  Algorithm prefill_exchange = Algorithm::kAuto,
            decode_exchange = Algorithm::kAuto;    // how tokens travel to experts, as TrainingPlan::exchange
  CutAttention attend_by = CutAttention::kTokens;  // with cp above 1
  PhaseOverlap prefill_overlap = {}, decode_overlap = {};
  int max_batch = 1;  // sequences that decode at once on one replica
  std::int64_t token_budget =
      0;  // most prompt tokens of one prefill iteration of a replica, but for one prompt
  std::int64_t absorbed_below = 0;  // cached tokens before prompts, see LatentRule
  int block_tokens = 64;            // of a page of the cache
  DType gemm = DType::kBf16;        // operands of matrix products, and tokens on their way to experts
  // As those products keep their weights, and the same two of experts. Nothing: as `gemm`.
  std::optional<DType> weights = {}, expert_gemm = {}, expert_weights = {};
  bool fused = false;                                 // kernels as serving frameworks have them: lower.cpp
  bool fused_head_norms = true, fused_append = true;  // of these, Fusion::kHeadNorms and kAppend
  bool fused_reduction = false;                       // sums with the short all-reduces before them, too
  bool quantised_reduction = false;                   // which quantise what they norm
  bool fused_quantise =
      true;  // norms and activations write what the products behind them read in 8 or 4 bits
  bool quantised_output = false;  // attention writes the 8 or 4 bits that the product behind it reads
  DType kv = DType::kBf16;        // the cache
  // Queries, keys and values of prompts as attention multiplies them; kFp8 with a cache of FP8, simulated
  // only. Whoever rotates queries and keys writes them in it. Tokens that decode are bound by the cache's
  // bytes.
  DType attention = DType::kBf16;
  bool fold = true;  // simulate one rank for all
  LaunchMode launch =
      LaunchMode::kHidden;       // kGraph: decoding up to `captured` sequences, the rest by kernels
  bool one_expert_call = false;  // the host launches the kernels of a layer's experts together
  int captured = 0;              // of a replica; kAllCaptured: however many
  int captured_prompts = 0;      // kGraph: iterations with prompts of so many tokens at most, too
  Sampling sampling = Sampling::kShards;
  int drafts =
      0;  // rows that each decoding sequence has beside its own, guesses to be checked; simulated only
  int expert_slots = 0;  // of a layer, where experts may stand more than once; 0: one an expert

  SharedExperts shared_experts = SharedExperts::kSeparate;
  int shared_copies = 0;  // of expert_slots, those of shared experts that stand on every rank

  int slots_of(const Experts& experts) const {
    return expert_slots > 0 ? expert_slots : experts.routed + experts.always;
  }
  SeparateExperts apart = {};  // where experts stand apart, ep is the number of their ranks

  bool experts_apart() const { return apart.ranks > 0; }
  bool enters() const { return stage == 0; }           // tokens become rows here
  bool exits() const { return stage == pp - 1; }       // and rows tokens
  int ranks() const { return dp * tp + apart.ranks; }  // of a stage
  int devices() const { return ranks() * pp; }         // of an instance
  int replicas() const { return dp / cp; }
  // Every sequence has no more than the next token and guesses.
  bool decodes(const Batch& batch) const {
    return std::all_of(batch.sequences.begin(), batch.sequences.end(),
                       [&](const BatchSequence& s) { return s.count <= 1 + drafts; });
  }
  const PhaseOverlap& overlap(bool decodes) const { return decodes ? decode_overlap : prefill_overlap; }
  Algorithm exchange(bool decodes) const { return decodes ? decode_exchange : prefill_exchange; }

  // In prefill or decode. Ranks of one replica that have its experts whole send each other tokens where
  // DeepEP carries them, as those of several replicas do anyway.
  ExpertSharing sharing(bool decodes) const {
    if (expert_tp > 1 && ep * expert_tp > tp) return ExpertSharing::kGather;
    if (tp == 1) return ep == 1 ? ExpertSharing::kAlone : ExpertSharing::kDispatch;
    const bool deepep =
        exchange(decodes) == Algorithm::kHierarchical || exchange(decodes) == Algorithm::kDirect;
    return ep > tp || (ep == tp && deepep) ? ExpertSharing::kDispatch : ExpertSharing::kAllReduce;
  }
  // In either phase. All ranks that gather tokens do so in both.
  bool shares_by(ExpertSharing how) const { return sharing(false) == how || sharing(true) == how; }
  // Between one attention and the next each rank of a replica has a share of the rows, which it norms and
  // takes to experts.
  bool sequence_parallel(bool decodes) const {
    return tp > 1 && sharing(decodes) != ExpertSharing::kAllReduce;
  }
  // Rows of padding that a batch may need, each a sequence with a page: where it has none of its own, and up
  // to a multiple of the ranks that share it.
  int padding_rows() const { return sequence_parallel(false) || sequence_parallel(true) ? tp : 1; }
  // Neighbours whose tokens choose experts together: a route each.
  int ranks_of_route() const { return shares_by(ExpertSharing::kGather) ? ep * expert_tp : ep; }
  // That have columns of each expert.
  int ranks_of_expert() const {
    if (shares_by(ExpertSharing::kGather)) return expert_tp;
    return shares_by(ExpertSharing::kAllReduce) ? tp / ep : 1;
  }
};

// Tokens, both ends included: drawn evenly, or with a median lognormally, what is beyond an end as that end.
struct LengthRange {
  int low = 0, high = 0;
  double median = 0, sigma = 0;  // sigma: deviation of the logarithm
};

struct ServingWorkload {
  int requests = 0;  // all there at the beginning; request i belongs to replica i modulo dp
  LengthRange input, output;
  Popularity popularity;
  std::uint64_t seed = 1;
};

struct ServiceGoal {  // of a class of requests; zero: not asked for
  Time ttft, tpot;
  bool given() const { return ttft.ns > 0 || tpot.ns > 0; }
};

struct ServingJob {
  Model model;
  ServingPlan plan;
  ServingWorkload workload;
  int ranks_per_node = 1;
};

// The lengths of a request: a function of seed and request alone.
struct RequestLengths {
  int input = 0, output = 0;
};
RequestLengths lengths_of(const ServingWorkload& workload, int request);

}  // namespace moebius
