#include "workloads/cost/analytic.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/layer_math.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

// Weights of another format are widened before they are multiplied, which the model does not know: layers of
// experts over 4-bit weights miss by 28 to 66% (median by chip and stack, AIConfigurator, H100 to GB300).
constexpr float kWidenedError = 0.5F;

constexpr double kAssumedMemoryEfficiency = 0.85;  // of a chip whose catalog entry states none
constexpr double kBlockBytes = 16 * 1024;          // that one thread block of a streaming kernel moves

const Architecture& row_of(const Accelerator& accelerator) {
  const Architecture* row = find_architecture(accelerator.architecture);
  CHECK(row != nullptr, fmt::format("no row for architecture \"{}\"", accelerator.architecture));
  return *row;
}

}  // namespace

int held_cores(const Engine& engine, const CostQuery& query) {
  return std::clamp(query.cores, 1, cores_of_chip(engine.chip, query.kind));
}

double stream_rate(const Engine& engine, double cores) {
  return std::min(engine.memory_rate, cores * engine.architecture->core_stream * engine.clock);
}

// All cores at the rate that they reach together; never less than one core needs for its first block.
Estimate stream_estimate(const Engine& engine, const CostQuery& query, double bytes) {
  const double first_block = std::min(bytes, kBlockBytes) / stream_rate(engine, 1);
  const double all = bytes / stream_rate(engine, held_cores(engine, query));
  return {engine.chip.kernel_floor.seconds() + std::max(first_block, all), bytes};
}

AnalyticModel::AnalyticModel(const Accelerator& accelerator)
    : AnalyticModel(accelerator, row_of(accelerator)) {}

AnalyticModel::AnalyticModel(const Accelerator& accelerator, const Architecture& architecture) {
  engine_.chip = accelerator;
  engine_.architecture = &architecture;
  engine_.clock = accelerator.clock.value > 0 ? accelerator.clock.value : architecture.clock;
  const double stated = accelerator.peak_clock.value;
  engine_.product_clock = stated > 0 ? std::min(engine_.clock, stated) : engine_.clock;
  const double share =
      accelerator.memory_efficiency > 0 ? accelerator.memory_efficiency : kAssumedMemoryEfficiency;
  engine_.memory_rate = accelerator.memory_rate.value * share;
  // A chip may be described by its memory alone; the roofline refuses its products (executed_dtype).
  const bool has_peak = std::any_of(accelerator.peak.begin(), accelerator.peak.end(),
                                    [](FlopRate peak) { return peak.value > 0; });
  for (int i = 0; has_peak && i < kNumDTypes; ++i) {
    const DType executed = executed_dtype(accelerator, static_cast<DType>(i));
    engine_.executed[static_cast<std::size_t>(i)] = executed;
    engine_.core_peak[static_cast<std::size_t>(i)] =
        accelerator.peak_of(executed).value * accelerator.peak_share() / std::max(1, accelerator.cores);
  }
}

Estimate AnalyticModel::estimate(const CostQuery& query, Clocks clocks) const {
  Estimate estimate;
  if (engine_.architecture->serial) {
    estimate = serial_estimate(engine_, query);
  } else if (is_attention(query.kind)) {
    estimate = attention_estimate(engine_, query);
  } else if (query.kind == OpKind::kDeltaRule) {
    estimate = delta_rule_estimate(engine_, query);
  } else if (uses_tensor_cores(query.kind)) {
    estimate = gemm_estimate(engine_, query, clocks);
  } else {
    estimate = stream_estimate(engine_, query, least_bytes(query));
  }
  estimate.seconds = std::max(
      {estimate.seconds, engine_.chip.kernel_floor.seconds(), roofline(engine_.chip, query).seconds()});
  return estimate;
}

float AnalyticModel::error(const CostQuery& query) const {
  if (is_attention(query.kind)) return engine_.architecture->error_attention;
  if (!uses_tensor_cores(query.kind) || query.kind == OpKind::kDeltaRule)
    return engine_.architecture->error_stream;
  const float error =
      is_grouped(query.kind) ? engine_.architecture->error_experts : engine_.architecture->error_gemm;
  return stored_dtype(query) == query.dtype ? error : std::max(error, kWidenedError);
}

}  // namespace moebius
