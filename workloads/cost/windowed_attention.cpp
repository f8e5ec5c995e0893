#include "workloads/cost/windowed_attention.h"

#include <algorithm>

#include "workloads/cost/roofline.h"
#include "workloads/cost/table.h"

namespace moebius {
namespace {

CostQuery with_window(const CostQuery& query, std::int32_t window) {
  CostQuery other = query;
  other.shape.window = window;
  return other;
}

std::int64_t longest_sequence(const CostQuery& query) {
  if (query.rows.empty()) return std::max(query.shape.kv, query.shape.m / std::max(1, query.shape.groups));
  return *std::max_element(query.rows.begin(), query.rows.end());
}

}  // namespace

CostQuery cut_to_sequence(const CostQuery& query) {
  const bool bounds = query.shape.window < longest_sequence(query);
  return !is_attention(query.kind) || bounds ? query : with_window(query, 0);
}

std::vector<std::int32_t> windows_of(const std::vector<MeasuredTable>& tables) {
  std::vector<std::int32_t> windows;
  for (const MeasuredTable& table : tables)
    for (const ProfileRange& range : table.data().where) {
      const auto window = static_cast<std::int32_t>(range.low);
      const bool states = range.key == ProfileKey::kWindow && range.low == range.high && window > 0;
      if (states && std::find(windows.begin(), windows.end(), window) == windows.end())
        windows.push_back(window);
    }
  return windows;
}

// By the tables of its window; where there are none, what attention to all keys takes, by what the model says
// of both. Never longer than that, nor than a measured larger window takes, nor shorter than a smaller one.
std::optional<Cost> MeasuredTables::of_window(const AnalyticModel& chip, const CostQuery& query,
                                              Clocks clocks) const {
  const CostQuery whole = with_window(query, 0);
  const auto all = of_any_storage(chip, whole, clocks);
  auto cost = of_any_storage(chip, query, clocks);
  if (!all) return cost;
  if (!cost) {
    const Estimate here = chip.estimate(query, clocks);
    cost = all;
    cost->seconds *= here.seconds / chip.estimate(whole, clocks).seconds;
    cost->memory_bytes = here.memory_bytes;
    cost->origin = Origin::kExtrapolated;
    cost->error = std::max(2 * all->error, chip.error(query));
    for (const std::int32_t window : windows_) {
      const auto known = of_any_storage(chip, with_window(query, window), clocks);
      if (!known) continue;
      cost->seconds = window < query.shape.window ? std::max(cost->seconds, known->seconds)
                                                  : std::min(cost->seconds, known->seconds);
    }
  }
  cost->seconds = std::clamp(cost->seconds, roofline(chip.engine().chip, query).seconds(),
                             std::max(all->seconds, roofline(chip.engine().chip, query).seconds()));
  return cost;
}

}  // namespace moebius
