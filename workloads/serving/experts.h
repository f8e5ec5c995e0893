// A mixture of experts of which each rank computes its part, whole experts (ep) or columns of each (expert
// tp), for all tokens of those that share them (ExpertSharing): ranks that share attention by heads have
// these already, so that none travels and a sum over the ranks joins the parts; replicas that share each
// expert by columns gather them first. Replicas that share whole experts dispatch their tokens instead
// (write_moe).
#pragma once

#include "workloads/training/layers/layer_writer.h"

namespace moebius {

// x -> x + experts(norm(x)). `route`: of source 0, whose tokens all ranks have, to the ranks of the
// expert-parallel group; `member`: this rank's place in it, -1 where it stands for all: the busiest.
TensorId write_replicated_moe(LayerWriter& writer, TensorId x, const RoutePtr& route, int member);

// The same of replicas with tokens of their own (ExpertSharing::kGather): each gathers those of all,
// `longest` rows of each rank, and gets back the sums of its own. Rows of products in 4 bits travel in these,
// others in BF16, which the router reads once they are gathered (SGLang's dp_attention, vLLM's all-gather and
// reduce-scatter, TensorRT-LLM's attention by data parallelism with experts by columns). Shared experts stand
// whole on each rank.
TensorId write_gathered_moe(LayerWriter& writer, TensorId x, const RoutePtr& route, int member,
                            std::int64_t longest);

}  // namespace moebius
