// Modules of a layer that a framework captures in a CUDA graph while the others stay eager: as a pass over a
// fragment that is about to be frozen. What tokens' choices size, the experts of a dropless mixture, cannot
// be captured (Megatron-Core, user guide, "CUDA Graph": --cuda-graph-impl transformer_engine with
// --cuda-graph-modules, in versions before --cuda-graph-scope, whose names these are).
#pragma once

#include <cstdint>
#include <span>

#include "workloads/schedule/fragment.h"

namespace moebius {

enum class GraphModule : std::uint8_t {
  kAttention,      // with its norm and what it adds to the residual stream
  kMlp,            // dense, likewise
  kMoe,            // all of a mixture of experts: its sizes must be known, as with a capacity
  kMoeRouter,      // its norm, the router and shared experts
  kMoePreprocess,  // what stands around the messages of dispatch forward, and of its gradient
};

// Fills Fragment::captured: what the modules compute and what their tensor-parallel ranks send is one graph
// for each layer (Megatron captures layers x microbatches x 2 of them, forward and backward apart:
// docs/discussions/deepseek-v3-gb200-optimization). Sums and casts of the residual stream, which no module's
// name is on, are of the half of the layer before them, on the way back of the one behind them; sums where
// experts meet what is beside them, of the experts. Gradients that travel, copies from and to the host and
// all outside of layers stay eager.
void capture(Fragment& fragment, std::span<const GraphModule> modules);

}  // namespace moebius
