#include "real/bench/case_tensors.h"

#include <memory>

namespace moebius {

Tensor tensor_of(const OperandSpec& spec, std::uint32_t key, bool stays) {
  return {.scope = stays ? Scope::kRank : Scope::kFragment,
          .memory = spec.weight ? MemoryKind::kWeights : MemoryKind::kTransient,
          .dtype = spec.dtype,
          .key = stays ? key : 0,
          .rows = spec.rows,
          .columns = spec.columns};
}

RoutePtr stand_in_route() {
  return std::make_shared<const Route>(
      RouteSpec{.ranks = 1, .ranks_per_node = 1, .experts = 1, .active = 1, .tokens = 1});
}

}  // namespace moebius
