// What stacks that train models do unless they are told otherwise: defaults of /plan by the name of the
// stack. Every one of them can be overridden by its own key, and degrees of parallelism are nobody's default.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/training/plan.h"

namespace moebius {

struct TrainingFramework {
  std::string_view name, help;
  // What the keys of /plan are where they are not given. Those of experts, of context parallelism, of 8-bit
  // products and of shards count where a plan has such; of the others the keys' own defaults do.
  TrainingPlan plan;
  std::string_view source;  // of these defaults; empty: those of the keys themselves
};

// The first one, "none", has the defaults of the schema.
std::span<const TrainingFramework> training_frameworks();

}  // namespace moebius
