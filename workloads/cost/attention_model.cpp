// Fused attention: tiles of queries that pass over the keys, and for few queries parts of the keys that a
// second kernel merges.
#include <algorithm>
#include <cmath>

#include "models/layer_math.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr double kKeysOfPart = 128;  // decode is cut along the keys into parts of so many

// Operations per second of one core on attention's products: the peak of the operand type for full tiles.
double attention_core_rate(const Engine& engine, DType dtype) {
  return engine.core_flops(dtype) * engine.architecture->attention;
}

// Query rows that share one pass over the keys: of prefill 128 positions of a head; of decode all heads of a
// KV head, padded to the 64 rows of the smallest product.
struct QueryTiles {
  double count = 0;    // over all sequences and heads
  double padding = 1;  // computed rows over real ones
};

QueryTiles query_tiles(const Shape& shape) {
  constexpr double kRows = 128, kLeastRows = 64;
  const double sequences = std::max(1, shape.groups);
  const double queries = std::max(1.0, static_cast<double>(shape.m) / sequences);
  const double shared = std::max(1.0, static_cast<double>(shape.heads) / std::max(1, shape.kv_heads));
  const double heads = queries >= kLeastRows ? shape.heads : std::max(1, shape.kv_heads);
  const double rows = queries >= kLeastRows ? queries : queries * shared;
  const double tile = rows <= kLeastRows ? kLeastRows : kRows;
  return {sequences * heads * std::ceil(rows / tile), std::ceil(rows / tile) * tile / rows};
}

// The passes that prepare and finish attention's backward: do and o are read and the FP32 dq cleared before;
// dq is read and written in the operands' type after.
double backward_pass_bytes(const Shape& shape) {
  const double rows = static_cast<double>(shape.m) * shape.heads;
  const double before = rows * (2.0 * shape.v_dim * 2 + 4.0 * shape.head_dim);
  const double after = rows * shape.head_dim * (4.0 + 2.0);
  return before + after;
}

// Tiles differ in length and are dealt out longest first: the cores end together, but for a quarter of a
// tile.
double attention_compute(const Engine& engine, const CostQuery& query, double cores, double pieces,
                         double work) {
  const double waves = std::max(1.0, pieces / cores + (pieces > cores ? 0.25 : 0.0));
  return work / pieces * waves / attention_core_rate(engine, query.dtype);
}

}  // namespace

Estimate attention_estimate(const Engine& engine, const CostQuery& query) {
  const int cores = held_cores(engine, query);
  const double floor = engine.chip.kernel_floor.seconds();
  const QueryTiles tiles = query_tiles(query.shape);
  const double work = op_flops(query.kind, query.shape).value * tiles.padding;
  const double memory = least_bytes(query) / stream_rate(engine, cores);
  const auto whole = [&](double pieces) {
    return floor + std::max(attention_compute(engine, query, cores, pieces, work), memory);
  };
  if (query.kind == OpKind::kAttentionGrad) {
    const double passes = backward_pass_bytes(query.shape);
    return {whole(tiles.count) + 2 * floor + passes / stream_rate(engine, cores),
            least_bytes(query) + passes};
  }
  // Few tiles (decode) are cut along the keys, and a second kernel merges the parts.
  const double parts = std::max(1.0, static_cast<double>(query.shape.kv) / kKeysOfPart);
  return {std::min(whole(tiles.count), whole(tiles.count * parts) + floor), least_bytes(query)};
}

}  // namespace moebius
