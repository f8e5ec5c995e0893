#include <algorithm>
#include <cmath>

#include "workloads/cost/table.h"

namespace moebius {
namespace {

double groups_of(const Shape& shape) {
  return std::max(1, shape.groups);
}

}  // namespace

double profile_key(ProfileKey key, OpKind kind, const Shape& shape) {
  switch (key) {
    case ProfileKey::kM:
      return static_cast<double>(shape.m);
    case ProfileKey::kN:
      return static_cast<double>(shape.n);
    case ProfileKey::kK:
      return static_cast<double>(shape.k);
    case ProfileKey::kRows:
      return static_cast<double>(is_weight_gradient(kind) ? shape.k : shape.m) / groups_of(shape);
    case ProfileKey::kGroups:
      return shape.groups;
    case ProfileKey::kHeads:
      return shape.heads;
    case ProfileKey::kKvHeads:
      return shape.kv_heads;
    case ProfileKey::kHeadDim:
      return shape.head_dim;
    case ProfileKey::kVDim:
      return shape.v_dim;
    case ProfileKey::kQueries:
      return static_cast<double>(shape.m) / groups_of(shape);
    case ProfileKey::kKv:
      return static_cast<double>(shape.kv);
    case ProfileKey::kWindow:
      return shape.window;
  }
  return 0;
}

Shape with_profile_key(ProfileKey key, OpKind kind, const Shape& before, double value, bool kv_follows) {
  Shape shape = before;
  const auto whole = static_cast<std::int64_t>(std::llround(value));
  const auto small = static_cast<std::int32_t>(whole);
  std::int64_t& rows = is_weight_gradient(kind) ? shape.k : shape.m;
  switch (key) {
    case ProfileKey::kM:
      shape.m = whole;
      break;
    case ProfileKey::kN:
      shape.n = whole;
      break;
    case ProfileKey::kK:
      shape.k = whole;
      break;
    case ProfileKey::kRows:
      rows = std::max<std::int64_t>(1, std::llround(value * groups_of(shape)));  // of a few experts alone
      break;
    case ProfileKey::kGroups:
      rows = std::llround(static_cast<double>(rows) / groups_of(shape) * std::max(1.0, value));
      shape.groups = small;
      break;
    case ProfileKey::kHeads:
      shape.heads = small;
      break;
    case ProfileKey::kKvHeads:
      shape.kv_heads = small;
      break;
    case ProfileKey::kHeadDim:
      shape.head_dim = small;
      break;
    case ProfileKey::kVDim:
      shape.v_dim = small;
      break;
    case ProfileKey::kQueries: {
      const double queries = profile_key(key, kind, shape);
      shape.m = std::llround(value * groups_of(shape));
      if (kv_follows)
        shape.kv = std::llround(queries > 0 ? static_cast<double>(shape.kv) * value / queries : value);
      shape.kv = std::max(shape.kv, whole);
      break;
    }
    case ProfileKey::kKv:
      shape.kv = whole;
      break;
    case ProfileKey::kWindow:
      shape.window = small;
      break;
  }
  return shape;
}

}  // namespace moebius
