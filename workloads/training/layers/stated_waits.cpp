#include "workloads/training/layers/stated_waits.h"

namespace moebius {
namespace {

bool wrote_operand(const Fragment& fragment, const Op& op, std::int32_t before,
                   const std::vector<std::int32_t>& last_writer) {
  for (int i = 0; i < op.num_inputs + op.num_outputs; ++i)
    if (last_writer[fragment.operands[op.first_tensor + i]] == before) return true;
  return false;
}

}  // namespace

StatedWaits::StatedWaits(const Fragment& fragment) : first_{0}, place_(fragment.ops.size(), -1) {
  std::vector<std::int32_t> last_writer(fragment.tensors.size(), -1);
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    const Op& op = fragment.ops[i];
    for (int d = 0; d < op.num_dependencies; ++d) {
      const std::int32_t before = fragment.dependencies[op.first_dependency + d];
      if (!wrote_operand(fragment, op, before, last_writer)) waits_.push_back(before);
    }
    first_.push_back(static_cast<std::int32_t>(waits_.size()));
    for (int j = 0; j < op.num_outputs; ++j)
      last_writer[fragment.output(op, j)] = static_cast<std::int32_t>(i);
  }
}

std::vector<std::int32_t> StatedWaits::places(std::int32_t op) const {
  std::vector<std::int32_t> places;
  for (const std::int32_t before : of(op))
    if (place_[before] >= 0) places.push_back(place_[before]);
  return places;
}

}  // namespace moebius
