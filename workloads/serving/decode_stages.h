// An iteration that decodes, cut into the stages of two half batches that follow each other: of each layer
//   1  what comes before attention
//   2  attention, its output's projection, the router
//   3  dispatch, and shared experts while its tokens travel
//   4  experts, and combine
//   5  what needs the sums
// One half's tokens travel while the other one has its longest stages: those of dispatch beside the other's
// stage 1, those of combine beside its stage 2. So decodes DeepSeek (deepseek-ai/open-infra-index, day 6: a
// pipeline of five stages, attention in two of them) and SGLang (sgl-project/sglang,
// operations_strategy.py, release 0.4.7, and its tbo_delta_stages).
#pragma once

#include "workloads/training/pipeline/two_batch.h"

namespace moebius {

inline constexpr std::size_t kStagesBehind = 2;  // the second half batch; SGLang's tbo_delta_stages

// Stages that a layer does not have are empty pieces; what precedes the layers is with the first of them, and
// what follows them with no layer is a piece of its own.
Pieces decode_stages(const Fragment& iteration);

}  // namespace moebius
