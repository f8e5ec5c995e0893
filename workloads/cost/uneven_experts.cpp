#include "workloads/cost/uneven_experts.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace moebius {
namespace {

// Tiles of all libraries hold 128 rows once experts have more than half of that. An even load was measured
// with what its tiles leave empty; of uneven ones each expert leaves its own.
std::int64_t tiled(std::int32_t rows) {
  constexpr std::int64_t kTile = 128;
  return rows <= kTile / 2 ? rows : (rows + kTile - 1) / kTile * kTile;
}

}  // namespace

EvenLoads::EvenLoads(std::span<const std::int32_t> rows) {
  std::array<std::int64_t, 32> sums{}, counts{};
  std::int64_t loaded = 0;
  const auto [least, most] = std::minmax_element(rows.begin(), rows.end());
  const bool even = *most - *least <= 1;
  for (const std::int32_t own : rows) {
    if (own <= 0) continue;
    const auto like = static_cast<std::uint32_t>(even ? *most : own);  // 63 and 64 rows are even too
    const auto place = static_cast<std::size_t>(std::bit_width(like) - 1);
    sums[place] += even ? own : tiled(own);
    ++counts[place];
    ++loaded;
  }
  const auto all = static_cast<double>(rows.size());
  for (std::size_t place = 0; place < sums.size(); ++place) {
    if (counts[place] == 0) continue;
    const double mean = static_cast<double>(sums[place]) / static_cast<double>(counts[place]);
    loads_[size_++] = {std::llround(mean * all), static_cast<double>(counts[place]) / all};
  }
  if (loaded == static_cast<std::int64_t>(rows.size())) return;
  loads_[size_++] = {static_cast<std::int64_t>(rows.size()), -static_cast<double>(loaded) / all};
  loads_[size_++] = {loaded, 1};
}

}  // namespace moebius
