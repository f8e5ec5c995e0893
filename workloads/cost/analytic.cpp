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

}  // namespace

int held_cores(const Engine& engine, const CostQuery& query) {
  return std::clamp(query.cores, 1, cores_of_chip(engine.chip, query.kind));
}

double stream_rate(const Engine& engine, double cores) {
  return std::min(engine.memory_rate, cores * engine.architecture->core_stream * engine.clock);
}

double Engine::core_flops(DType dtype) const {
  return chip.peak_of(executed_dtype(chip, dtype)).value / std::max(1, chip.cores);
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
