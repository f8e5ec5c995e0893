// A mixture of experts among ranks that share attention by heads: each has every token already, so that none
// travels. A rank computes what its part of the experts makes of them, whole experts (ep) or columns of each
// (expert tp), and a sum over the ranks joins the parts. Attention replicas with tokens of their own dispatch
// them instead (write_moe), or gather them where they share each expert by columns.
#pragma once

#include "workloads/training/layers/layer_writer.h"

namespace moebius {

// x -> x + experts(norm(x)). `route`: of source 0, whose tokens all ranks have, to the ranks of the
// expert-parallel group; `member`: this rank's place in it, -1 where it stands for all: the busiest.
TensorId write_replicated_moe(LayerWriter& writer, TensorId x, const RoutePtr& route, int member);

// The same of ranks with tokens of their own: each gathers those of all, `longest` rows of each rank, and
// gets back the sums of its own. Rows of products in 4 bits travel in these, others in BF16, which the router
// reads once they are gathered (SGLang's dp_attention, vLLM's all-gather and reduce-scatter, TensorRT-LLM's
// attention by data parallelism with experts by columns). Shared experts stand whole on each rank.
TensorId write_gathered_moe(LayerWriter& writer, TensorId x, const RoutePtr& route, int member,
                            std::int64_t longest);

}  // namespace moebius
