// Prompts cut over ranks (context parallelism): each rank computes two pieces of every sequence, one from its
// front and one from its back, so that all of them attend to as many keys (Llama 3, arXiv 2407.21783, section
// 3.3.2). Every rank keeps the keys and values of its own tokens; for attention those of all are gathered.
#pragma once

#include <vector>

#include "workloads/schedule/batch.h"

namespace moebius {

// Of batches by replica those by rank: `cp` ranks a replica, one behind the other. A rank that would have no
// token computes the first one along. Nothing changes with cp 1.
std::vector<BatchPtr> cut_prompts(const std::vector<BatchPtr>& of_replicas, int cp);

}  // namespace moebius
