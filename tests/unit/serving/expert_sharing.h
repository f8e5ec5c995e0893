// Small services whose ranks share experts, and what they compute.
#pragma once

#include <memory>

#include "tests/unit/training/small_job.h"
#include "workloads/serving/plan.h"

namespace moebius {

// Of so many ranks in a node; how these share experts is left to say.
inline ServingJob expert_sharing_job(int ranks) {
  ServingJob job;
  job.ranks_per_node = ranks;
  job.plan.max_batch = 4;
  job.plan.token_budget = 16;
  job.plan.block_tokens = 4;
  job.model = small_model();
  job.workload = {.requests = 4, .input = {8, 8}, .output = {3, 3}, .popularity = {}};
  return job;
}

inline BatchPtr whole_prompt(std::int32_t tokens) {
  return std::make_shared<const Batch>(Batch{64, {{0, tokens, 0, tokens, {0}}}});
}

}  // namespace moebius
