#include "sim/network/group_runs.h"

#include <vector>

namespace moebius {

std::optional<GroupRuns> GroupRuns::of(const Group& group) {
  const std::vector<std::int32_t>& ranks = group.ranks;
  const auto size = static_cast<std::int64_t>(ranks.size());
  if (size < 2) return {};
  std::int64_t block = 1;
  while (block < size && ranks[block] - ranks[block - 1] == 1) ++block;
  const std::int64_t stride = block < size ? ranks[block] - ranks[0] : block;
  if (stride < block || size % block != 0) return {};
  for (std::int64_t i = 0; i < size; ++i) {
    if (ranks[i] - ranks[0] != i / block * stride + i % block) return {};
  }
  const std::int64_t within = ranks[0] % stride;
  return GroupRuns(block, stride, stride * (size / block), ranks[0] - within / block * block);
}

std::int64_t GroupRuns::in_tile(std::int32_t rank) const {
  return ((rank - first_) % tile_ + tile_) % tile_;
}

std::int64_t GroupRuns::index_of(std::int32_t rank) const {
  const std::int64_t at = in_tile(rank);
  return at / stride_ * block_ + at % stride_ % block_;
}

GroupRuns::Place GroupRuns::group_of(std::int32_t rank) const {
  const std::int64_t at = in_tile(rank);
  return {rank - at, at % stride_ / block_};
}

}  // namespace moebius
