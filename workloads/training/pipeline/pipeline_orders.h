// The longer ones of the pipeline's orders of passes, of one rank each, the optimizer left out.
#pragma once

#include <vector>

#include "workloads/training/pipeline/pipeline.h"

namespace moebius {

// Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2: as 1F1B, but the weights' gradients of
// rank r are r microbatches late, so that all ranks keep as much alive as the first one does under 1F1B and
// the last backward passes follow each other without them. Bubble (p-1)(F + B - W), B of inputs alone.
std::vector<Pass> zero_bubble_h1(const PipelineSpec& spec, int rank);

// The same, section 6 (ZB-V), of all ranks: two chunks a rank, from the first rank to the last and back,
// never more than 2p of them alive, which is as much as 1F1B keeps. With F = B = W nothing waits but for the
// first microbatch to come. With other times (PipelineSpec::seconds) the passes are laid out on a clock, as
// the paper's automatic scheduler does: by several rules, of which the one that ends first is taken.
std::vector<std::vector<Pass>> zero_bubble_v(const PipelineSpec& spec);

// DeepSeek-V3 technical report (arXiv 2412.19437), section 3.2.1, in the eight stretches of its published
// program (github.com/deepseek-ai/DualPipe): two streams of microbatches meet, from both ends of the pipeline
// or, in its cut-in-half form DualPipeV, on the way there and on the way back.
std::vector<Pass> dual_pipe(const PipelineSpec& spec, int rank);

}  // namespace moebius
