// One iteration of serving on one rank as a fragment: tokens of a batch in, layers over a paged cache, the
// next token of each sequence out. Layers are those of training (workloads/training/layers/layer_writer.h),
// parameters have the same keys and starting values; what differs is attention.
#pragma once

#include <functional>
#include <optional>

#include "workloads/schedule/batch.h"
#include "workloads/serving/plan.h"
#include "workloads/serving/token_ends.h"
#include "workloads/training/layers/layer_writer.h"

namespace moebius {

// What all iterations of a run share; lives as long as the run.
struct ServingShape {
  explicit ServingShape(const ServingJob& job);

  const ServingJob& job;
  TrainingPlan plan, prefill;   // degrees and formats, as the layers' writer reads them; for decode, prefill
  TrainingWorkload unused;      // it reads sequence lengths in training only
  std::int64_t cache_rows = 0;  // tokens that one rank's cache has room for
  std::int64_t states = 1;      // sequences of which delta networks keep a row, and one for padding
  LoweringInput input(bool decodes) const {
    return {&job.model, decodes ? &plan : &prefill, &unused, job.ranks_per_node};
  }
};

// Of experts' products, and as their weights stand.
WeightFormat expert_format(const ServingPlan& plan);
// Number formats of weights, as the plan has them.
void set_formats(const ServingPlan& plan, LayerWriter& writer);

// How the kernels of an iteration of such a batch are launched, and which of them are one.
LaunchMode launch_of(const ServingPlan& plan, const Batch& batch, bool decodes);
void set_kernels(const ServingPlan& plan, LaunchMode launch, FragmentBuilder& builder);

struct Iteration {
  BatchPtr
      batch;  // decode (a token each), prompts or parts of them, or both, decoding sequences behind prompts
  ShardPosition shard;
  std::function<RoutePtr(int layer)> route;
  PairBytesPtr moves = {};  // weights of experts that travel beside it; null: none
  // The layers are a module that guesses (DeepSeek-V3, section 2.2): what goes in is the embedding of a token
  // joined with the model's hidden state before it.
  bool from_hidden = false;
  // As `moves`, of experts that stand in slots and are in new ones at its end; what slots started as.
  ExpertTransferPtr transfer = {};
  LayerWriter::SlotsOfMember first_slots = {};
  // Where ranks have cut prompts and attend by heads: the batch of all their tokens, a share of which are
  // those of `batch`; else null.
  BatchPtr whole = {};
  // Where ranks gather the tokens of all who share experts: rows of the longest of their batches.
  std::int64_t longest = 0;
  // How its kernels are launched; nothing: by the size of `batch` (launch_of). Ranks that share experts, and
  // both halves of an iteration, are launched alike, whatever their own batches are.
  std::optional<LaunchMode> launch = {};
  std::optional<bool> absorbed = {};  // see LatentRule
};
ShardPosition shard_of(const RankClass& rank_class);
FragmentPtr lower_iteration(const ServingShape& shape, const Iteration& iteration);

}  // namespace moebius
