// Over which ranks a plan cuts its state: ZeRO (Rajbhandari et al. 2020) over the replicas of a parameter,
// or, with /plan/dp/shard, over neighbours among them (hybrid sharding: MiCS, Zhang et al. 2022; HSDP).
#pragma once

#include <string>

#include "workloads/schedule/fragment.h"
#include "workloads/training/plan.h"

namespace moebius {

// The ranks that hold the same parameters, and how many they are.
GroupRole replicas(bool expert);
int num_replicas(const TrainingPlan& plan, bool expert);

// The members among which one copy of sharded state is cut, and how many they are; 1: nothing is cut.
GroupRole shard_group(const TrainingPlan& plan, bool expert);
int num_shards(const TrainingPlan& plan, bool expert);

// Those that hold the same shard, in groups apart; kNone: nobody else does.
GroupRole same_shard_group(const TrainingPlan& plan, bool expert);

// Whether gradients (ZeRO 2), parameters (ZeRO 3) are sharded.
bool shards_gradients(const TrainingPlan& plan, bool expert);
bool shards_parameters(const TrainingPlan& plan, bool expert);

// Whether sharded gradients gather whole on each rank until the last microbatch; of any.
bool accumulates_whole(const TrainingPlan& plan, bool expert);
bool accumulates_whole(const TrainingPlan& plan);

// The same parameter, or gradient, of which each member holds its shard.
Tensor shard_of(const Tensor& whole, const TrainingPlan& plan);

// Between two passes (/plan/dp/reshard_after_forward): what stands of weights where a plan leaves `stand`;
// shards of fewer ranks than the neighbours that would keep one copy stay as they are. Those neighbours, and
// what one of them keeps of a weight. What stands in which way is of the step (Scope::kStep).
WeightsStand stands(const TrainingPlan& plan, bool expert, WeightsStand stand);
GroupRole regather_group(bool expert);
Tensor part_of(const Tensor& whole, const TrainingPlan& plan);
Tensor of_step(Tensor whole);

// The weight that an FP8 weight is quantised from, by the plan or ranks that gathered it.
bool stands_in_half(const Tensor& weight, const TrainingPlan& plan);
Tensor half_of(const Tensor& weight);

// Of FP8 weights that are gathered as such: a shard cannot be scaled for itself. With one scale for a tensor
// the largest magnitudes of all shards are found after the update, once, and so all ranks know it.
bool shares_scale(const Tensor& weight, const TrainingPlan& plan);

// Whether sums of gradients go beside the last backward pass: some are left for it, and there are ranks to
// sum over.
bool sums_beside_passes(const TrainingPlan& plan);
// The same, or of gradients that gather whole into shards.
bool sums_with_last(const TrainingPlan& plan);

// Whether updates come in the order in which sums beside the last backward pass end: what comes from the host
// for one that waits would keep those behind it waiting too.
bool updates_as_summed(const TrainingPlan& plan);

// What of a plan's state is sharded, stands in host memory or is computed again: one fact a line, none for a
// plan that keeps everything on every rank.
std::string describe_state(const TrainingPlan& plan);

}  // namespace moebius
