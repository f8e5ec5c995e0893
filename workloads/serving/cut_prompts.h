// Prompts cut over ranks (context parallelism): each rank computes two pieces of every sequence, one from its
// front and one from its back, so that all of them attend to as many keys (Llama 3, arXiv 2407.21783, section
// 3.3.2). Every rank keeps the keys and values of its own tokens; for attention those of all are gathered.
// Where ranks attend by heads, each computes an equal run of the rows of the batch, wherever sequences end in
// it, up to the latents of queries and keys; those of all are gathered, each rank attends with its heads, and
// the results travel back to the ranks of their tokens (sequence, tensor, sequence parallel: Zuo et al. 2025,
// arXiv 2506.12708, section 4.3.1).
#pragma once

#include <vector>

#include "workloads/schedule/batch.h"
#include "workloads/serving/plan.h"

namespace moebius {

// Of batches by replica those by rank: `cp` ranks a replica, one behind the other. A rank that would have no
// token computes the first one along; runs are equally long, so that the last ones may share tokens. Nothing
// changes with cp 1.
std::vector<BatchPtr> cut_prompts(const std::vector<BatchPtr>& of_replicas, int cp,
                                  CutAttention attend_by = CutAttention::kTokens);

// Equally long runs of the rows of each replica, one for each of its `parts` ranks. Where these do not divide
// the rows the last runs begin earlier: the rows that they repeat are what engines pad.
std::vector<BatchPtr> cut_rows(const std::vector<BatchPtr>& of_replicas, int parts);
inline std::int64_t rows_of_part(std::int64_t rows, int parts) {
  return (rows + parts - 1) / parts;
}

}  // namespace moebius
