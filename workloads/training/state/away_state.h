// State that a device does not hold all the time: weights of which each rank holds a shard (ZeRO 3), and what
// stands in host memory (/plan/offload). Fragments are lowered as if everything stood on the device; here
// they are written anew with the ops that bring a tensor before its first use and put it back after its last
// change.
#pragma once

#include <cstdint>
#include <set>

#include "workloads/training/layers/builder.h"
#include "workloads/training/plan.h"

namespace moebius {

// Keys of the activations of a forward fragment that wait for the reverse pass in host memory: those of all
// groups of layers but the last, which the reverse pass wants first.
std::set<std::uint32_t> away_activations(const TrainingPlan& plan, const Fragment& forward);

// Of so many layers of a stage those, the first ones, that this is true of.
int layers_away(const TrainingPlan& plan, int layers);

// Sums that go into shards and copies to the host: when a pass has computed they may be on their way. And
// what computes, where weights that stand between passes go. The last one of each lane, which keeps their
// order.
std::vector<std::int32_t> leaving_ops(const TrainingPlan& plan, const Fragment& fragment);

// What a fragment is beside its ops.
struct AwayState {
  std::set<std::uint32_t> activations = {};  // keys of those that stand in host memory
  bool first_of_step = false;                // a forward pass before all others of its stage in a step
  std::set<std::uint32_t> refreshed = {};    // keys of what another stage of the rank has gathered before it
  bool adapters_alone = false;               // are updated: all other weights are frozen
  HeldWeights weights = {};                  // of those of which ranks hold shards
  bool shares_ends = false;  // another stage of the rank may have embedding and head, too: not between passes
  const Fragment* forward = nullptr;         // of the stage whose weights a reverse pass frees; null: of none
};

// Freezes what `builder` holds. Its ops fall into stretches: groups of /plan/dp/group_layers layers, in the
// optimizer the updates. What a stretch uses is asked for when the stretch `prefetch` before it starts to
// compute, on the lanes of data communication (gathers) and host copies; what it leaves (shards of sums,
// copies to the host) must be done when the stretch `prefetch` + 1 after it starts to compute. So a device
// never holds more than prefetch + 1 stretches of what is brought, and as many of what is left. A plan with
// nothing away: frozen as it is. With /plan/dp/buffers passes of the chip copy what gathers bring, and what
// is to be summed, where the first stretch uses it and where a stretch has made it.
// Weights that the plan leaves gathered between passes (TrainingPlan::regather) are of the step: what is
// found whole is not brought, what neighbours hold is gathered among them alone. Gradients that gather whole
// (TrainingPlan::accumulation) are, too, until they are summed.
// With weights in BF16 those of FP8 products are gathered so, and quantised there. With
// /plan/dp/overlap_weights the first forward pass of a step gathers what the optimizer has updated.
FragmentPtr freeze_with_away_state(const TrainingPlan& plan, const AwayState& away, FragmentBuilder& builder);

}  // namespace moebius
