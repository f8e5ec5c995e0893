#include "workloads/calibration/device/plan_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/cost/measured_table.h"
#include "workloads/routing/routing.h"

namespace moebius {
namespace {

constexpr std::size_t kLeastTests = 4, kMostTests = 24, kGridPerTest = 6;

// What kinds need beside the keys of their tables.
Shape completed(OpKind kind, Shape shape) {
  switch (kind) {
    case OpKind::kInput:
      shape.k = 1;
      shape.groups = 1;
      break;
    case OpKind::kGate:
    case OpKind::kGateGrad:  // sigmoid scores
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kCrossEntropy:
    case OpKind::kLastRows:
    case OpKind::kNextToken:
    case OpKind::kPlaceExperts:
      shape.groups = 1;
      break;
    case OpKind::kIndexScores:
    case OpKind::kTopKeys:
      shape.n = shape.kv;
      break;
    case OpKind::kPagedAttention:
      shape.n = std::int64_t{shape.kv_heads} * (shape.head_dim + shape.v_dim);
      break;
    case OpKind::kConvolution:
      shape.groups = static_cast<std::int32_t>(std::max<std::int64_t>(1, shape.m / 64));
      break;
    case OpKind::kDeltaRule:
      shape.groups = std::max(1, shape.groups);
      shape.n = 2 * std::int64_t{shape.kv_heads} * shape.head_dim + std::int64_t{shape.heads} * shape.v_dim;
      break;
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:
      shape.n = shape.heads * (shape.head_dim - shape.k + shape.v_dim);
      break;
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:
      shape.k = 2;  // weights that a token brings
      break;
    case OpKind::kAdam:
    case OpKind::kSumSquares:
      shape.n = 1;
      break;
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:
    case OpKind::kGemm:
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
    case OpKind::kNorm:
    case OpKind::kNormGrad:
    case OpKind::kRowMeans:
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
    case OpKind::kActivation:
    case OpKind::kActivationGrad:
    case OpKind::kUnpermute:
    case OpKind::kUnpermuteGrad:
    case OpKind::kAdd:
    case OpKind::kSplit:
    case OpKind::kConcat:
    case OpKind::kLargest:
    case OpKind::kQuantise:
    case OpKind::kTransposeQuantise:
    case OpKind::kCrossEntropyStats:
    case OpKind::kCacheAppend:
    case OpKind::kAbsorbQueries:
    case OpKind::kAbsorbedValues:
    case OpKind::kGreedySample:
    case OpKind::kDispatch:
    case OpKind::kCombine:
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kRecv:
    case OpKind::kCopyToHost:
    case OpKind::kCopyFromHost:
      break;
  }
  return shape;
}

// A size that may have been drawn in between, as models have them: a multiple of what both ends are multiples
// of, up to
// 64. Kernels are several times slower on widths that do not begin at 16 bytes, which no model has.
double drawn_between(double low, double high, double unit) {
  constexpr std::int64_t kMostStep = 64;
  const std::int64_t common = std::gcd(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high));
  const auto step = static_cast<double>(std::gcd(common, kMostStep));
  return std::clamp(step * std::round(low * std::pow(high / low, unit) / step), low, high);
}

double most_elements_of(const Shape& s) {
  const auto product = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b);
  };
  const double groups = std::max(1, s.groups);
  const double heads = std::max(product(s.heads, s.head_dim), product(s.heads, s.v_dim));
  return std::max({product(s.m, s.n), product(s.m, s.k), groups * product(s.n, s.k),
                   heads * static_cast<double>(s.m),
                   groups * static_cast<double>(s.kv) * product(s.kv_heads, s.head_dim)});
}

std::string text_of(const ProfileTable& table, const DeviceCase& one) {
  std::string text = table.name;
  for (std::size_t i = 0; i < one.site.size(); ++i)
    text += fmt::format(" {} {}", to_string(table.site_keys[i]), one.site[i]);
  for (std::size_t i = 0; i < one.at.size(); ++i)
    text += fmt::format(" {} {}", to_string(table.axes[i].key), one.at[i]);
  if (!one.rows.empty()) text += fmt::format(" rows {}", fmt::join(one.rows, "+"));
  return one.is_test ? text + ", a test" : text;
}

// By Zipf's law of exponent 1: half of the rows to a few experts, as skewed routers send them.
std::vector<std::int32_t> skewed_rows(int groups, double mean) {
  std::vector<std::int32_t> rows;
  double weights = 0;
  for (int i = 0; i < groups; ++i) weights += 1.0 / (i + 1);
  for (int i = 0; i < groups; ++i)
    rows.push_back(static_cast<std::int32_t>(std::lround(mean * groups / weights / (i + 1))));
  return rows;
}

std::size_t size_of(const std::vector<Numbers>& axes) {
  std::size_t size = 1;
  for (const Numbers& axis : axes) size *= axis.size();
  return size;
}

}  // namespace

Numbers half(const Numbers& all) {
  Numbers some;
  for (std::size_t i = 0; i < all.size(); i += 2) some.push_back(all[i]);
  return some;
}

ProfileTable family_of(OpKind kind, DType dtype, std::vector<ProfileKey> site,
                       const std::vector<ProfileKey>& axes) {
  ProfileTable table;
  table.kinds = {std::string(to_string(kind))};
  table.dtype = dtype;
  table.name = fmt::format("{} {}", table.kinds.front(), to_string(dtype));
  table.site_keys = std::move(site);
  for (const ProfileKey axis : axes) table.axes.push_back({axis, {}});
  return table;
}

void PlanMaker::add(ProfileTable table, const std::vector<Numbers>& given, const std::vector<Numbers>& axes) {
  table.hot = hot_;
  if (hot_) table.name += " hot";
  plan_.families.push_back(std::move(table));
  const std::vector<Numbers> sites = given.empty() ? std::vector<Numbers>{Numbers{}} : given;
  const std::size_t grid = size_of(axes);
  for (const Numbers& site : sites)
    for (std::size_t point = 0; point < grid; ++point) {
      DeviceCase one{.site = site};
      std::size_t rest = point;
      for (const Numbers& axis : axes) {
        const std::size_t index = rest % axis.size();
        one.at.push_back(axis[index]);
        const bool is_between = index % 2 == 1 && index + 1 < axis.size();
        one.rank = std::max(one.rank, is_between ? 1 : 0);
        rest /= axis.size();
      }
      add_case(std::move(one));
    }
  add_between(sites, axes, sites.size() * grid);
}

void PlanMaker::add_between(const std::vector<Numbers>& sites, const std::vector<Numbers>& axes,
                            std::size_t grid) {
  const std::size_t tests = std::clamp(grid / kGridPerTest, kLeastTests, kMostTests);
  const std::uint64_t seed = plan_.families.size();
  for (std::size_t test = 0; test < tests; ++test) {
    DeviceCase one{.site = sites[random_bits(seed, test) % sites.size()], .is_test = true};
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
      one.at.push_back(drawn_between(axes[axis].front(), axes[axis].back(),
                                     random_unit(random_bits(seed, test, axis + 1))));
    one.rank = test < kLeastTests ? 0 : 1;
    add_case(std::move(one));
  }
}

void PlanMaker::add_tests(const std::string& part, const std::vector<Numbers>& sites,
                          const std::vector<Numbers>& points) {
  for (const Numbers& site : sites)
    for (const Numbers& point : points)
      add_case({.site = site, .at = point, .is_test = true, .part = part, .rank = 1});
}

void PlanMaker::add_uneven(int groups, const std::vector<Numbers>& points) {
  const auto rows_axis = std::find_if(last().axes.begin(), last().axes.end(),
                                      [](const ProfileAxis& axis) { return axis.key == ProfileKey::kRows; });
  for (const Numbers& point : points) {
    DeviceCase one{
        .site = {static_cast<double>(groups)}, .at = point, .is_test = true, .part = "uneven loads"};
    one.rows = skewed_rows(groups, point[static_cast<std::size_t>(rows_axis - last().axes.begin())]);
    one.rank = 1;
    add_case(std::move(one));
  }
}

// The same shape may be drawn twice.
void PlanMaker::add_case(DeviceCase one) {
  const OpKind kind = *kind_of(last().kinds.front());
  one.family = static_cast<int>(plan_.families.size()) - 1;
  one.shape = completed(kind, shape_in(last(), kind, one.site, one.at));
  if (!one.rows.empty())
    (kind == OpKind::kGroupedGemmWgrad ? one.shape.k : one.shape.m) =
        std::accumulate(one.rows.begin(), one.rows.end(), std::int64_t{0});
  one.text = text_of(last(), one);
  const bool is_there = std::any_of(plan_.cases.rbegin(), plan_.cases.rend(), [&](const DeviceCase& other) {
    return other.family == one.family && other.text == one.text;
  });
  if (!is_there && most_elements_of(one.shape) <= most_elements_) plan_.cases.push_back(std::move(one));
}

}  // namespace moebius
