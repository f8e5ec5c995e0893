// How the server of a row was started, as far as that is published: InferenceMAX (now InferenceX) starts its
// servers by scripts (benchmarks/*.sh) whose changes its perf-changelog.yaml tells by framework's version.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"
#include "workloads/validation/servers/server_row.h"

namespace moebius {

struct ServerStart {
  std::string kernels;                      // /cluster/kernels
  int token_budget = 0;                     // /plan/prefill/token_budget; 0: as the framework does
  int max_batch = 0;                        // of a replica at most; 0: as many as there are users
  std::vector<std::string> scheduler = {};  // members of /plan/scheduler, as JSON
  bool replays_prompts = false;             // as graphs
  std::string speculative = {};             // /plan/decode/speculative, as JSON; empty: nothing is guessed
};

// Rows of InferenceMAX (its dumps are named by a date, or as a gap analysis), and others.
bool is_inferencemax(const ServerRow& row);

// 70b_fp8_h200_slurm.sh of vLLM (kv-cache-dtype: fp8); other scripts for vLLM and SGLang on Hopper do not.
bool keeps_fp8(const ServerRow& row, const Model& model);

// `replicas` of attention in a worker that decodes, each with `batch` of the users; `per_tensor`: FP8 scales.
struct ServerShape {
  int replicas = 1, batch = 1;
  bool per_tensor = false;
};

ServerStart server_start(const ServerRow& row, const Model& model, const ServerShape& shape);

}  // namespace moebius
