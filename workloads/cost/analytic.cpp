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
constexpr double kBlockBytes = 16 * 1024;          // that one thread block of a streaming kernel moves

bool is_attention(OpKind kind) {
  return kind == OpKind::kAttention || kind == OpKind::kAttentionGrad;
}

// Cores that a kernel of so many blocks really uses of those it holds.
double busy_cores(int cores, double blocks) {
  return std::clamp(blocks, 1.0, static_cast<double>(cores));
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
  const double packed =
      queries * std::max(1.0, static_cast<double>(shape.heads) / std::max(1, shape.kv_heads));
  if (queries >= kLeastRows)
    return {sequences * shape.heads * std::ceil(queries / kRows),
            std::ceil(queries / kLeastRows) * kLeastRows / queries};
  const double rows = std::ceil(packed / kLeastRows) * kLeastRows;
  return {sequences * std::max(1, shape.kv_heads) * std::ceil(packed / kRows), rows / packed};
}

// The passes that prepare and finish attention's backward: do and o are read and the FP32 dq cleared before;
// dq is read and written in the operands' type after.
double backward_pass_bytes(const Shape& shape) {
  const double rows = static_cast<double>(shape.m) * shape.heads;
  const double before = rows * (2.0 * shape.v_dim * 2 + 4.0 * shape.head_dim);
  const double after = rows * shape.head_dim * (4.0 + 2.0);
  return before + after;
}

}  // namespace

double Engine::core_flops(DType dtype) const {
  return chip.peak_of(executed_dtype(chip, dtype)).value / std::max(1, chip.cores);
}

Estimate attention_estimate(const Engine& engine, const CostQuery& query) {
  const int cores = held_cores(engine, query);
  const bool backward = query.kind == OpKind::kAttentionGrad;
  const QueryTiles tiles = query_tiles(query.shape);
  // Key blocks let decode spread over the cores (split-K); prefill has its tiles only.
  const double key_blocks = std::max(1.0, static_cast<double>(query.shape.kv) / 512);
  const double queries = static_cast<double>(query.shape.m) / std::max(1, query.shape.groups);
  const double pieces = queries >= 64 ? tiles.count : tiles.count * key_blocks;
  const double work = op_flops(query.kind, query.shape).value * tiles.padding;
  // Tiles differ in length and are dealt out longest first: the cores end together, but for half a tile.
  const double waves = std::max(1.0, pieces / cores + (pieces > cores ? 0.25 : 0.0));
  const double compute = work / pieces * waves / attention_core_rate(engine, query.dtype);
  const double bytes = least_bytes(query) + (backward ? backward_pass_bytes(query.shape) : 0.0);
  const double passes = backward ? backward_pass_bytes(query.shape) / stream_rate(engine, cores) : 0.0;
  const double memory = least_bytes(query) / stream_rate(engine, busy_cores(cores, pieces * 4));
  // Split decode ends with a second kernel that merges the parts; backward has three kernels.
  const double kernels = backward ? 3 : (queries < 64 ? 2 : 1);
  return {engine.chip.kernel_floor.seconds() * kernels + std::max(compute, memory) + passes, bytes};
}

Estimate stream_estimate(const Engine& engine, const CostQuery& query, double bytes) {
  const double cores = busy_cores(held_cores(engine, query), std::ceil(bytes / kBlockBytes));
  return {engine.chip.kernel_floor.seconds() + bytes / stream_rate(engine, cores), bytes};
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
