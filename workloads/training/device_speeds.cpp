#include "workloads/training/device_speeds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "workloads/routing/random_stream.h"
#include "workloads/routing/routing.h"
#include "workloads/training/pipeline/columns.h"

namespace moebius {
namespace {

constexpr std::uint64_t kSpeedDraws = 0x5beed;  // apart from what else the seed is for

// Of one column the pace of each stage.
std::vector<double> paces_of_column(const TrainingPlan& plan, const DeviceSpeeds& speeds, int column) {
  const int width = ranks_of_column(plan), stage_size = plan.ranks() / plan.pp;
  std::vector<double> paces(plan.pp, std::numeric_limits<double>::infinity());
  for (int stage = 0; stage < plan.pp; ++stage) {
    for (int i = 0; i < width; ++i)
      paces[stage] = std::min(paces[stage], speeds.of(stage * stage_size + column * width + i));
  }
  return paces;
}

struct ColumnPaces {
  std::vector<double> of_stage;
  double slowest() const { return *std::min_element(of_stage.begin(), of_stage.end()); }
};

std::vector<ColumnPaces> all_columns(const TrainingPlan& plan, const DeviceSpeeds& speeds) {
  std::vector<ColumnPaces> columns;
  const int count = plan.ranks() / plan.pp / ranks_of_column(plan);
  for (int column = 0; column < count; ++column) columns.push_back({paces_of_column(plan, speeds, column)});
  return columns;
}

}  // namespace

DeviceSpeeds::DeviceSpeeds(const SpeedVariation& variation, std::uint64_t seed)
    : variation_(variation), seed_(seed) {
  for (const SlowDevice& device : variation.slow) slow_[device.device] = device.speed;
}

double DeviceSpeeds::of(std::int32_t device) const {
  const auto slow = slow_.find(device);
  if (slow != slow_.end()) return slow->second;
  RandomStream random(random_bits(seed_, kSpeedDraws, static_cast<std::uint64_t>(device)));
  const double z = random.normal();
  switch (variation_.law) {
    case SpeedLaw::kNormal:
      return 1 + variation_.sigma * z;
    case SpeedLaw::kLogNormal:
      return std::exp(variation_.sigma * z);
  }
  return 1;
}

std::int32_t slowest_device(const DeviceSpeeds& speeds, std::span<const std::int32_t> devices) {
  const auto slower = [&](std::int32_t a, std::int32_t b) { return speeds.of(a) < speeds.of(b); };
  return *std::min_element(devices.begin(), devices.end(), slower);
}

std::vector<std::int32_t> with_slow_columns(const TrainingPlan& plan, std::vector<std::int32_t> kinds,
                                            const DeviceSpeeds& speeds, int most) {
  if (!plan.fold || plan.ranks() / plan.pp % ranks_of_column(plan) != 0) return kinds;
  const std::vector<ColumnPaces> columns = all_columns(plan, speeds);
  kinds.resize(columns.size(), 0);  // none: all are alike
  std::vector<std::int32_t> order(columns.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return columns[a].slowest() < columns[b].slowest();
  });
  const int own = std::min(most, static_cast<int>(columns.size()) - 1);
  std::int32_t next = 1 + *std::max_element(kinds.begin(), kinds.end());
  for (int i = 0; i < own; ++i) kinds[order[i]] = next++;
  // Numbers in the order of first use, without those that no column has any more.
  std::map<std::int32_t, std::int32_t> numbers;
  for (std::int32_t& kind : kinds)
    kind = numbers.try_emplace(kind, static_cast<std::int32_t>(numbers.size())).first->second;
  return kinds;
}

void set_paces(const TrainingPlan& plan, const DeviceSpeeds& speeds, Layout& layout) {
  layout.pace_of_class.clear();
  if (!plan.fold) {
    for (const RankClass& rank_class : layout.classes)
      layout.pace_of_class.push_back(speeds.of(layout.device_of_rank[rank_class.representative()]));
    return;
  }
  const std::vector<ColumnPaces> columns = all_columns(plan, speeds);
  const int width = ranks_of_column(plan), stage_size = plan.ranks() / plan.pp;
  for (const RankClass& rank_class : layout.classes) {
    const auto column_of = [&](std::int32_t rank) { return rank % stage_size / width; };
    int slowest = column_of(rank_class.representative());
    for (const std::int32_t rank : rank_class.ranks) {
      if (columns[column_of(rank)].slowest() < columns[slowest].slowest()) slowest = column_of(rank);
    }
    layout.pace_of_class.push_back(columns[slowest].of_stage[rank_class.representative() / stage_size]);
  }
}

}  // namespace moebius
