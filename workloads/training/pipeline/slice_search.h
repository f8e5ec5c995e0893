// Dynamic pipeline slicing, the search: which layers each stage holds, when it is known what a layer takes on
// each rank and what it fills.
#pragma once

#include <vector>

#include "workloads/training/pipeline/pipeline.h"

namespace moebius {

// Of one microbatch, forward and back. Stages hold whole layers; the first one the embedding too, the last
// one the head, MTP modules included.
struct SliceLoads {
  std::vector<std::vector<double>> seconds;             // by pipeline rank, by layer
  std::vector<double> embedding_seconds, head_seconds;  // by pipeline rank
  std::vector<double> stays, kept;                      // bytes by layer: of state; for a microbatch alive
  double embedding_stays = 0, embedding_kept = 0;
  double head_stays = 0, head_kept = 0;
  double passing = 0, head_passing = 0;  // bytes inside a pass: of any stage, of the last one
  std::vector<double> room;              // bytes by pipeline rank
  // By pipeline rank: microbatches of each of its chunks that are alive together, at each moment of a step at
  // which no other has at least as many of all.
  std::vector<std::vector<std::vector<int>>> alive;

  int layers() const { return static_cast<int>(stays.size()); }
};

// What slices cost, what counts first first: seconds of the slowest rank, all its stages together; seconds of
// the slowest stage; the fullest rank, as a share of its room; the sum of squares of the ranks' seconds,
// which is least when they are even.
struct SliceCost {
  double slowest_rank = 0, slowest_stage = 0, fullest = 0, squares = 0;
};

// `layers`: of each stage of the model.
SliceCost cost_of_slices(const SliceLoads& loads, const StagePlacement& placement,
                         const std::vector<int>& layers);

struct SliceChoice {
  std::vector<int> layers;  // of each stage
  SliceCost cost;
  bool exact = true;  // no other slices are better
};

// The best slices among those that fit, where some do (fullest at most 1); else the best of those that exceed
// the room least. Exact, by dynamic programming over the cuts of one rank after the other with limits that
// get tighter, one part of the cost at a time, where a rank has one or two stages; with more (interleaved),
// the best that moving a layer from any stage to any other finds, beginning with stages of even numbers of
// layers.
SliceChoice search_slices(const SliceLoads& loads, const StagePlacement& placement);

}  // namespace moebius
