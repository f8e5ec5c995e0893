// A mixture of experts among ranks that share attention by heads: each has every token already, so that none
// travels. A rank computes what its part of the experts makes of them, whole experts (ep) or columns of each
// (expert tp), and a sum over the ranks joins the parts. Attention replicas with tokens of their own dispatch
// them instead (write_moe).
#pragma once

#include "workloads/training/layers/layer_writer.h"

namespace moebius {

// x -> x + experts(norm(x)). `route`: of source 0, whose tokens all ranks have, to the ranks of the
// expert-parallel group; `member`: this rank's place in it, -1 where it stands for all: the busiest.
TensorId write_replicated_moe(LayerWriter& writer, TensorId x, const RoutePtr& route, int member);

}  // namespace moebius
