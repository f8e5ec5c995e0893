// How the server of a row was started: what server_rules.h tells of it, and the kernels that it ran.
#pragma once

#include <optional>
#include <string>

#include "hw/document.h"
#include "models/model.h"
#include "workloads/validation/servers/server_row.h"

namespace moebius {

struct ServerStart {
  std::string kernels = {};                  // /cluster/kernels
  int token_budget = 0;                      // /plan/prefill/token_budget; 0: as the framework does
  int max_batch = 0;                         // of a replica at most; 0: as many as there are users
  double memory_share = 0;                   // /plan/cache/hbm/share; 0: as the framework does
  std::string scheduler = {};                // /plan/scheduler, as JSON; empty: as the framework does
  std::string launches = {};                 // keys of it that say how prompts are launched
  bool fused_shared_experts = false;         // where ranks cut each expert
  std::optional<bool> fused_reduction = {};  // /plan/fused_reduction; nothing: as the framework does
  bool quantised_output = false;             // /plan/quantised_output
  std::string speculative = {};              // /plan/decode/speculative, as JSON; empty: nothing is guessed
};

// Whether experts stand whole on ranks of their own, though the row says that each rank has a part of all.
bool keeps_whole_experts(const ServerRow& row, const Model& model);

// Of the cache.
bool keeps_fp8(const ServerRow& row, const Model& model);

// `replicas` of attention in a worker that decodes, each with `batch` of the users, and in one that takes
// prompts in; `per_tensor`: FP8 scales.
struct ServerShape {
  int replicas = 1, batch = 1, prompt_replicas = 1;
  bool per_tensor = false;
};

ServerStart server_start(const ServerRow& row, const Model& model, const ServerShape& shape);

}  // namespace moebius
