// Heads for tokens, over the ranks that share a context (Jacobs et al. 2023, arXiv 2309.14509).
#pragma once

#include "workloads/training/layers/layer_writer.h"

namespace moebius {

// `how` as in schedule/context_part.h: column blocks out and row blocks in (kHeadsOut), as long as whole
// sequences, or back (kHeadsBack), as wide as all heads.
TensorId exchange_heads(LayerWriter& writer, TensorId x, std::int64_t how);

}  // namespace moebius
