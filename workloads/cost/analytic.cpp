#include "workloads/cost/analytic.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/layer_math.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr double kAssumedMemoryEfficiency = 0.85;  // of a chip whose catalog entry states none
constexpr double kKeysOfPart = 128;                // decode is cut along the keys into parts of so many
constexpr double kBlockBytes = 16 * 1024;          // that one thread block of a streaming kernel moves

bool is_attention(OpKind kind) {
  return kind == OpKind::kAttention || kind == OpKind::kAttentionGrad;
}

int held_cores(const Engine& engine, const CostQuery& query) {
  return std::clamp(query.cores, 1, cores_of_chip(engine.chip, query.kind));
}

double stream_rate(const Engine& engine, double cores) {
  return std::min(engine.memory_rate, cores * engine.architecture->core_stream * engine.clock);
}

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

double Engine::core_flops(DType dtype) const {
  return chip.peak_of(executed_dtype(chip, dtype)).value / std::max(1, chip.cores);
}

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

// All cores at the rate that they reach together; never less than one core needs for its first block.
Estimate stream_estimate(const Engine& engine, const CostQuery& query, double bytes) {
  const double first_block = std::min(bytes, kBlockBytes) / stream_rate(engine, 1);
  const double all = bytes / stream_rate(engine, held_cores(engine, query));
  return {engine.chip.kernel_floor.seconds() + std::max(first_block, all), bytes};
}

AnalyticModel::AnalyticModel(const Accelerator& accelerator) {
  engine_.chip = accelerator;
  engine_.architecture = find_architecture(accelerator.architecture);
  CHECK(engine_.architecture != nullptr,
        fmt::format("no row for architecture \"{}\"", accelerator.architecture));
  engine_.clock = accelerator.clock.value > 0 ? accelerator.clock.value : engine_.architecture->clock;
  const double share =
      accelerator.memory_efficiency > 0 ? accelerator.memory_efficiency : kAssumedMemoryEfficiency;
  engine_.memory_rate = accelerator.memory_rate.value * share;
}

Estimate AnalyticModel::estimate(const CostQuery& query, Clocks clocks) const {
  Estimate estimate;
  if (is_attention(query.kind)) {
    estimate = attention_estimate(engine_, query);
  } else if (uses_tensor_cores(query.kind)) {
    estimate = gemm_estimate(engine_, query, clocks);
  } else {
    estimate = stream_estimate(engine_, query, least_bytes(query));
  }
  estimate.seconds = std::max(
      {estimate.seconds, engine_.chip.kernel_floor.seconds(), roofline(engine_.chip, query).seconds()});
  return estimate;
}

float AnalyticModel::error(OpKind kind) const {
  if (is_attention(kind)) return engine_.architecture->error_attention;
  return uses_tensor_cores(kind) ? engine_.architecture->error_gemm : engine_.architecture->error_stream;
}

}  // namespace moebius
