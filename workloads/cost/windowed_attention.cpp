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

// A window that was measured, or all keys: what it takes, and what the model says of it.
struct KnownWindow {
  double keys = 0, seconds = 0, model = 0;
};

// From the one to the other as the model goes; as keys do where it does not tell them apart.
double seconds_between(const KnownWindow& less, const KnownWindow& more, double keys, double model) {
  const double share = more.model > less.model ? (model - less.model) / (more.model - less.model)
                                               : (keys - less.keys) / (more.keys - less.keys);
  return less.seconds + std::clamp(share, 0.0, 1.0) * (more.seconds - less.seconds);
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

// By the tables of its window; where there are none, between the next measured windows, of which the largest
// is that of all keys and the smallest one of no keys, in no time. Never longer than attention to all keys.
std::optional<Cost> MeasuredTables::of_window(const AnalyticModel& chip, const CostQuery& query,
                                              Clocks clocks) const {
  const CostQuery whole = with_window(query, 0);
  const auto all = of_any_storage(chip, whole, clocks);
  auto cost = of_any_storage(chip, query, clocks);
  if (!all) return cost;
  if (!cost) {
    const auto modelled = [&](const CostQuery& asked) { return chip.estimate(asked, clocks).seconds; };
    KnownWindow less, more{static_cast<double>(longest_sequence(query)), all->seconds, modelled(whole)};
    for (const std::int32_t window : windows_) {
      const bool smaller = window < query.shape.window;
      if (smaller ? window <= less.keys : window >= more.keys) continue;
      const CostQuery measured = with_window(query, window);
      if (const auto known = of_any_storage(chip, measured, clocks))
        (smaller ? less : more) = {static_cast<double>(window), std::min(known->seconds, all->seconds),
                                   modelled(measured)};
    }
    const Estimate here = chip.estimate(query, clocks);
    cost = all;
    cost->seconds = seconds_between(less, more, query.shape.window, here.seconds);
    cost->memory_bytes = here.memory_bytes;
    cost->origin = Origin::kExtrapolated;
    cost->error = std::max(2 * all->error, chip.error(query));
  }
  cost->seconds = std::clamp(cost->seconds, roofline(chip.engine().chip, query).seconds(),
                             std::max(all->seconds, roofline(chip.engine().chip, query).seconds()));
  return cost;
}

}  // namespace moebius
