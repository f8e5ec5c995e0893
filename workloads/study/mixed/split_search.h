// The best way to give a training job to pools of different chips: which pool's stages come first, how many
// stages each pool holds (so many replicas side by side), tensor parallelism, the pipeline's schedule; or
// replicas on chips of one kind each, with microbatches by their speed. Layers go to the stages by what they
// take (dynamic slicing), microbatches to the replicas likewise.
//
// Every legal way is estimated by the chips' efficiency matrices (efficiency_matrix.h) and carried out, of
// interleaved pipelines the best alone. Beside them stand the parts: each pool alone, at its best by the same
// search. What the best split reaches is its tokens a second over the sum of theirs.
#pragma once

#include <string>
#include <vector>

#include "workloads/perform/perform.h"
#include "workloads/study/mixed/efficiency_matrix.h"

namespace moebius {

struct SplitPlan {
  std::vector<int> order;  // of pools along the pipeline
  int tp = 1, pp = 1, chunks = 1;
  PipelineKind schedule = PipelineKind::k1F1B;
  bool by_replicas = false;  // chips differ from replica to replica, not from stage to stage
};

struct SplitRun {
  SplitPlan plan;
  double estimate = 0;       // tokens/s by the matrices
  double tokens_per_s = 0;   // carried out; 0: refused
  std::string refusal = {};  // why it cannot run
  std::string layers = {};   // of each stage, or microbatches of the replicas
};

struct SplitPart {
  std::string pool, chip;
  int devices = 0;
  SplitRun run;
  double plain_tokens_per_s = 0;  // as the scenario has it, without a pipeline; 0: it does not run
};

// What the step would gain without one of the things that stop it.
struct SplitStop {
  std::string what;
  double efficiency = 0;  // of the parts, without it
};

struct SplitStudy {
  std::string name;
  std::vector<EfficiencyMatrix> matrices;  // by pool
  std::vector<std::string> pools;
  std::int64_t plans = 0;  // legal ones, all estimated
  std::vector<SplitPart> parts;
  std::vector<SplitRun> runs;  // fastest first
  double as_given = 0;         // tokens/s of the scenario as it stands; 0: it does not run
  std::vector<SplitStop> stops;
  Document scenario;  // by the best one

  double sum_of_parts() const;
  double sum_of_plain_parts() const;  // 0: one of them does not run
  double efficiency() const { return runs.front().tokens_per_s / sum_of_parts(); }
};

struct SplitRequest {
  std::string file;
  Document scenario;  // as it is changed
  const Library& library;
  const StartExecutor& start;
  int finalists = 4;  // interleaved ones that are carried out; of the others all are
};

// input_error for a scenario that is no training on several kinds of pools; run_error where no split, or none
// of a part, can run.
SplitStudy study_split(const SplitRequest& request);

std::string to_text(const SplitPlan& plan, const std::vector<std::string>& pools);
std::string split_text(const SplitStudy& study);
std::string split_json(const SplitStudy& study);

}  // namespace moebius
