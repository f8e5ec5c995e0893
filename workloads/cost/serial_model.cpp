// One core of a CPU, which does one thing after the other: what it computes, in register tiles that are
// filled up, and what it reads and writes.
//
//   time = floor + flops / peak + exponentials + bytes / rate
#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/layer_math.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/serial_law.h"
#include "workloads/cost/serving_ops.h"

namespace moebius {
namespace {

double filled_up(double size, double tile) {
  return std::ceil(size / tile) * tile;
}

// Rows of experts are filled up each on their own; those of a weight gradient are summed over, one at a time.
double filled_rows(const CostQuery& query, const Shape& shape, double tile) {
  if (query.kind == OpKind::kGroupedGemmWgrad) return filled_up(static_cast<double>(shape.m), tile);
  const double experts = std::max(1, shape.groups);
  if (query.rows.empty()) return experts * filled_up(static_cast<double>(shape.m) / experts, tile);
  return std::accumulate(query.rows.begin(), query.rows.end(), 0.0,
                         [&](double sum, std::int32_t rows) { return sum + filled_up(rows, tile); });
}

// Operations with register tiles filled up.
double product_flops(const Engine& engine, const CostQuery& query, const Shape& shape) {
  const DType executed = engine.executed[static_cast<std::size_t>(query.dtype)];
  const TileShapes& tile = engine.architecture->tiles[static_cast<std::size_t>(operand_width(executed))];
  const double m = filled_rows(query, shape, tile.least_m);
  const double n = filled_up(static_cast<double>(shape.n), tile.least_n);
  return 2 * m * n * static_cast<double>(shape.k);
}

// The delta rule multiplies states by vectors, which fill no tiles.
double matrix_flops(const Engine& engine, const CostQuery& query, const Shape& shape) {
  if (query.kind == OpKind::kDeltaRule) return op_flops(query.kind, shape).value;
  return product_flops(engine, query, shape);
}

double attention_seconds(const Engine& engine, const CostQuery& query, const Shape& shape) {
  const Architecture& a = *engine.architecture;
  const double exponentials = attention_pairs(shape) * shape.heads / (a.exponentials * engine.clock);
  return exponentials + op_flops(query.kind, shape).value / (a.attention * engine.core_flops(query.dtype));
}

}  // namespace

SerialTerms serial_terms(const Engine& engine, const CostQuery& asked) {
  const CostQuery query = priced_as(asked);
  const Shape shape = loaded_shape(query);
  const bool attention = is_attention(query.kind);
  SerialTerms terms = {1, static_cast<double>(shape.m), least_bytes(query), 0, 0};
  if (attention) {
    terms[1] *= shape.heads;
    terms[3] = op_flops(query.kind, shape).value;
    terms[4] = attention_pairs(shape) * shape.heads;
  } else if (uses_tensor_cores(query.kind)) {
    terms[3] = matrix_flops(engine, query, shape);
  }
  return terms;
}

Estimate serial_estimate(const Engine& engine, const CostQuery& asked) {
  const CostQuery query = priced_as(asked);
  const Shape shape = loaded_shape(query);
  const double bytes = least_bytes(query);
  double seconds = engine.chip.kernel_floor.seconds() + bytes / engine.memory_rate;
  if (is_attention(query.kind)) {
    seconds += attention_seconds(engine, query, shape);
  } else if (uses_tensor_cores(query.kind)) {
    seconds += matrix_flops(engine, query, shape) / engine.core_flops(query.dtype);
  }
  return {seconds, bytes};
}

}  // namespace moebius
