#include "workloads/cost/emulated.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

// Attention has no routed rows, and its time is no line in m.
bool has_routed_size(OpKind kind) {
  return kind != OpKind::kAttention && kind != OpKind::kAttentionGrad && kind != OpKind::kPagedAttention &&
         kind != OpKind::kIndexScores && kind != OpKind::kTopKeys;
}

// Experts, or the sequences of a recurrence: CostQuery::rows tells what each has, m what all have.
std::int64_t sharers_of_rows(const OpKey& key) {
  const bool shares = is_grouped(key.kind) || key.kind == OpKind::kDeltaRule;
  return shares ? std::max(key.shape.groups, 1) : 1;
}

std::string family_of(OpKey key) {
  routed_rows(key) = 0;
  key.rows.clear();
  return to_text(key);
}

// `rows` on every expert or sequence, or in all.
OpKey with_rows(const OpKey& key, std::int64_t rows) {
  OpKey other = key;
  other.rows.clear();
  routed_rows(other) = rows * sharers_of_rows(key);
  return other;
}

Recipe::Term between(const OpKey& key, std::int64_t rows, double count) {
  const GridCell cell = grid_cell(rows);
  const double width = static_cast<double>(cell.high - cell.low);
  return {.low = with_rows(key, cell.low),
          .high = with_rows(key, cell.high),
          .share = width > 0 ? static_cast<double>(rows - cell.low) / width : 0,
          .count = count};
}

Recipe interpolated(const OpKey& key) {
  if (key.rows.empty()) {
    OpKey copy = key;
    return {{between(key, std::max<std::int64_t>(1, routed_rows(copy) / sharers_of_rows(key)), 1)}};
  }
  std::map<std::int32_t, int> experts;  // by rows
  for (const std::int32_t rows : key.rows) ++experts[rows];
  Recipe recipe;
  for (const auto& [rows, count] : experts) {
    if (rows > 0)
      recipe.terms.push_back(
          between(key, rows, static_cast<double>(count) / static_cast<double>(key.rows.size())));
  }
  return recipe;
}

// One element after the other: a part of them stands for all.
Recipe in_proportion(const OpKey& key) {
  const double count = static_cast<double>(key.shape.m) / static_cast<double>(kMostElements);
  const OpKey part = with_rows(key, kMostElements);
  return {{{.low = part, .high = part, .count = count}}};
}

bool equal_rows(const OpKey& key) {
  return !key.rows.empty() && key.rows.front() == key.rows.back();
}

}  // namespace

GridCell grid_cell(std::int64_t rows) {
  constexpr double kStep = 1.25;
  GridCell cell;
  while (cell.high < rows) {
    cell.low = cell.high;
    cell.high = std::max<std::int64_t>(cell.high + 1, std::llround(kStep * static_cast<double>(cell.high)));
  }
  if (cell.high == rows) cell.low = rows;
  return cell;
}

const Recipe& Recipes::of(const OpKey& key) {
  const std::string text = to_text(key);
  const auto found = made_.find(text);
  if (found != made_.end()) return found->second;
  if (key.kind == OpKind::kAdam && key.shape.m > kMostElements) return made_[text] = in_proportion(key);
  std::set<std::string>& exact = exact_[family_of(key)];
  if (!has_routed_size(key.kind) || static_cast<int>(exact.size()) < kExactSizes) {
    exact.insert(text);
    return made_[text] = {{{.low = key, .high = key}}};
  }
  return made_[text] = interpolated(key);
}

OpKey EmulatedCosts::on_device(const CostQuery& query) const {
  const int all = ops_->cores();
  const bool shares = all > 1 && chip_.cores > 0 && query.cores > 0 && query.cores < chip_.cores;
  const double share = shares ? static_cast<double>(query.cores) / chip_.cores : 1;
  OpKey key = key_of(query, shares ? std::max(1, static_cast<int>(std::lround(share * all))) : 0);
  if (is_grouped(key.kind) && equal_rows(key)) key.rows.clear();  // even is even, said or not
  return key;
}

std::vector<OpKey> EmulatedCosts::needs(const CostQuery& query) const {
  std::vector<OpKey> keys;
  for (const Recipe::Term& term : recipes_->of(on_device(query)).terms) {
    keys.push_back(term.low);
    if (!(term.high == term.low)) keys.push_back(term.high);
  }
  return keys;
}

Cost EmulatedCosts::cost(const CostQuery& query) const {
  Cost cost{.origin = Origin::kMeasured};
  double uncertain = 0;  // seconds
  for (const Recipe::Term& term : recipes_->of(on_device(query)).terms) {
    const OpMeasurement low = ops_->get(term.low), high = ops_->get(term.high);
    const double seconds = low.seconds + term.share * (high.seconds - low.seconds);
    const double far = std::max(std::abs(seconds - low.seconds), std::abs(high.seconds - seconds));
    cost.seconds += term.count * seconds;
    uncertain += term.count * (far + std::max(low.spread, high.spread) * seconds);
    if (term.share > 0) cost.origin = Origin::kInterpolated;
    if (term.count > 1) cost.origin = Origin::kExtrapolated;
  }
  if (cost.seconds > 0) cost.error = static_cast<float>(uncertain / cost.seconds);
  const double bytes = least_bytes(query);
  const double most = chip_.memory_rate.value > 0 ? cost.seconds * chip_.memory_rate.value : bytes;
  cost.memory_bytes = std::min(bytes, most);
  return cost;
}

std::string EmulatedCosts::description() const {
  return fmt::format("measured on {}, not on {}", ops_->device(), chip_.id);
}

}  // namespace moebius
