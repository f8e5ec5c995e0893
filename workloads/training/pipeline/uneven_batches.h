// Replicas of unequal speed: how many microbatches of a step each of them takes (/plan/dp/microbatches), so
// that all end at about the same time. A replica is whole pipelines of one tensor- and context-parallel
// group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/training/pipeline/dynamic_slicing.h"
#include "workloads/training/pipeline/slicing.h"

namespace moebius {

// Neighbouring replicas that meet in every microbatch, in groups of experts or of dense MLPs, and so take
// equally many.
int replicas_that_meet(const TrainingPlan& plan);

// Microbatches of each replica, `microbatches` in all, by what one takes on each: the slowest ends as early
// as it can (each microbatch goes to whoever would end first with it, which is exact where all take alike),
// after `ahead` of its own that fill its pipeline; every replica takes at least one. Runs of `together`
// replicas take equally many; CHECKs that they divide the replicas and the microbatches.
struct BatchSplit {
  int microbatches = 0;
  int ahead = 0;
  int together = 1;
};
std::vector<int> split_microbatches(const std::vector<double>& seconds, const BatchSplit& split);

// Seconds that a replica takes for a microbatch in the steady state: those of its slowest stage, on the chips
// that it stands on, by slice_loads().
std::vector<double> replica_seconds(const SlicingInput& input, const std::vector<StageSlice>& slices);

// Which part of a step's batch each replica's microbatches are: round by round, those that have one left in
// the order of replicas; equal numbers give microbatch * replicas + replica.
std::vector<std::vector<std::int32_t>> parts_of_batch(const std::vector<int>& microbatches);

// Whether ranks of one column (columns.h) stand in unlike pools in one stage: then no rank stands for
// another.
bool columns_are_mixed(const Cluster& cluster, const TrainingPlan& plan);

// `kinds` (columns.h) told apart by the pools that a column stands in and by its number of microbatches.
std::vector<std::int32_t> with_uneven_columns(const Cluster& cluster, const TrainingPlan& plan,
                                              std::vector<std::int32_t> kinds);

// "128 on each of 4, 40 on each of 8": of replicas that follow one another.
std::string microbatches_text(const std::vector<int>& microbatches);

}  // namespace moebius
