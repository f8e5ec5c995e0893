// How fast a pool trains one layer of a model, for giving layers to stages of different chips.
#pragma once

#include "hw/cluster.h"
#include "models/model.h"
#include "workloads/training/plan.h"

namespace moebius {

struct LayerSpeedQuery {
  const Model& model;
  const TrainingPlan& plan;
  const TrainingWorkload& workload;
};

// FLOP/s of one rank, forward and backward: matrix products at the chip's rate for a shard of the MLP's up
// projection, then the layer's tensor-parallel collectives over the scale-up link. An estimate, by the costs
// that are built in, so that a scenario has one schedule whatever profiles a caller brings.
double layer_speed(const Pool& pool, const FabricSpec& spec, const LayerSpeedQuery& query);

}  // namespace moebius
