#include "workloads/calibration/experts/expert_parts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/cost/measured_table.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/table.h"
#include "workloads/cost/uneven_experts.h"

namespace moebius {
namespace {

constexpr double kMostPasses = 0.5;  // of a row that passes around its GEMMs may take

ExpertPair pair_of(const ExpertRow& row) {
  return {.experts = static_cast<int>(row.routings->front().size()),
          .hidden = row.layer.hidden,
          .width = row.layer.width,
          .matrices = row.layer.gated ? 2 : 1};
}

Shape moved(const Shape& shape, double rows) {
  return with_profile_key(ProfileKey::kRows, OpKind::kGroupedGemm, shape, rows, true);
}

}  // namespace

Shape ExpertPair::shape(bool up) const {
  return up ? Shape{.n = matrices * width, .k = hidden, .groups = experts}
            : Shape{.n = hidden, .k = width, .groups = experts};
}

ExpertParts::ExpertParts(const AnalyticModel& model, const ProfileTable& table,
                         const std::vector<const ExpertRow*>& rows, std::vector<double> points)
    : model_(&model), table_(&table), points_(std::move(points)) {
  for (const ExpertRow* row : rows) pairs_.push_back(pair_of(*row));
  std::sort(pairs_.begin(), pairs_.end());
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
}

double ExpertParts::rows_of(const std::vector<std::int32_t>& load) {
  return std::accumulate(load.begin(), load.end(), 0.0) / static_cast<double>(load.size());
}

double ExpertParts::seconds(const CostQuery& query) const {
  return model_->estimate(query, clocks_of(*table_, 0)).seconds;
}

void ExpertParts::add_parts(const CostQuery& query, std::size_t pair, double share,
                            std::map<std::size_t, double>& parts) const {
  CostQuery even = query;
  even.shape = loaded_shape(query);
  even.rows = {};
  const auto load = [&](std::int64_t rows) {
    even.shape.m = rows;
    return even;
  };
  const EvenLoads loads(query.rows);
  const double alike = loads.sum([&](std::int64_t rows) { return seconds(load(rows)); });
  const double alone = std::max(1.0, seconds(query) / alike);
  for (const EvenLoad& one : loads) add_even_parts(load(one.rows), pair, share * one.weight * alone, parts);
}

void ExpertParts::add_even_parts(const CostQuery& even, std::size_t pair, double share,
                                 std::map<std::size_t, double>& parts) const {
  const double here = seconds(even), factor = share * 1e6;
  const double rows = profile_key(ProfileKey::kRows, even.kind, even.shape);
  const auto above = std::lower_bound(points_.begin(), points_.end(), rows * (1 - 1e-9));
  const auto high = static_cast<std::size_t>(above - points_.begin());
  const std::size_t first = pair * points_.size();
  if (above == points_.end() || high == 0 || *above <= rows * (1 + 1e-9)) {
    parts[first + std::min(high, points_.size() - 1)] += here * factor;
    return;
  }
  const auto model = [&](std::size_t point) {
    CostQuery there = even;
    there.shape = moved(even.shape, points_[point]);
    return seconds(there);
  };
  const double low_time = model(high - 1), high_time = model(high);
  const double weight = high_time > low_time * (1 + 1e-9)
                            ? std::clamp((here - low_time) / (high_time - low_time), 0.0, 1.0)
                            : std::log(rows / points_[high - 1]) / std::log(*above / points_[high - 1]);
  if (weight < 1) parts[first + high - 1] += (1 - weight) * low_time * factor;
  if (weight > 0) parts[first + high] += weight * high_time * factor;
}

std::vector<ExpertPart> ExpertParts::of(const ExpertRow& row) const {
  const auto pair =
      static_cast<std::size_t>(std::lower_bound(pairs_.begin(), pairs_.end(), pair_of(row)) - pairs_.begin());
  std::map<std::size_t, double> parts;
  for (const auto& load : *row.routings)
    for (const CostQuery& query : expert_kernels(row.layer, row.tokens, load, table_->cores))
      if (is_expert_gemm(query))
        add_parts(query, pair, 1.0 / static_cast<double>(row.routings->size()), parts);
  std::vector<ExpertPart> list;
  for (const auto& [value, microseconds] : parts) list.push_back({value, microseconds});
  return list;
}

double ExpertParts::gemm_microseconds(const ExpertRow& row) const {
  double passes = 0;
  for (const auto& load : *row.routings)
    for (const CostQuery& query : expert_kernels(row.layer, row.tokens, load, table_->cores))
      if (!is_expert_gemm(query)) passes += seconds(query) / static_cast<double>(row.routings->size());
  return row.microseconds - std::min(passes * 1e6, kMostPasses * row.microseconds);
}

double ExpertParts::model_at(std::size_t pair, std::size_t point, bool up) const {
  const CostQuery query{.kind = OpKind::kGroupedGemm,
                        .shape = moved(pairs_[pair].shape(up), points_[point]),
                        .dtype = table_->dtype,
                        .cores = table_->cores,
                        .rows = {},
                        .stored = table_->stored};
  return seconds(query) * 1e6;
}

}  // namespace moebius
