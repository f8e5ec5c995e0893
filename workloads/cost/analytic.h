// The analytic model: tiles and waves over the cores held, the pipeline of a k-loop, the burst of stores at
// its end, device memory with its achieved rate, and the shortest kernel. No fit to any system; constants by
// architecture.
#pragma once

#include <array>

#include "hw/accelerator.h"
#include "workloads/cost/architecture.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// The state of a chip under a kernel: measured alone for a moment, or running for hours at its power limit.
enum class Clocks : std::uint8_t { kBurst, kSustained };

// What the formulas need of a chip, in seconds and bytes per second; computed once.
struct Engine {
  Accelerator chip;
  const Architecture* architecture = nullptr;
  double clock = 0;                            // Hz
  double product_clock = 0;                    // Hz, at which products have core_peak
  double memory_rate = 0;                      // achieved by streaming
  std::array<DType, kNumDTypes> executed{};    // executed_dtype() of each
  std::array<double, kNumDTypes> core_peak{};  // of one core, operations per second

  double core_flops(DType dtype) const { return core_peak[static_cast<std::size_t>(dtype)]; }
};

struct Estimate {
  double seconds = 0;
  double memory_bytes = 0;
};

class AnalyticModel {
 public:
  // The architecture must have a row (find_architecture).
  explicit AnalyticModel(const Accelerator& accelerator);
  // With another row, which must outlive the model: trial constants of a fit.
  AnalyticModel(const Accelerator& accelerator, const Architecture& architecture);

  // Defined for every compute kind; never below the roofline.
  Estimate estimate(const CostQuery& query, Clocks clocks) const;
  float error(const CostQuery& query) const;  // expected, relative
  const Engine& engine() const { return engine_; }

 private:
  Engine engine_;
};

// Cores that the query holds, at least one and at most the chip's; and bytes per second that so many stream.
int held_cores(const Engine& engine, const CostQuery& query);
double stream_rate(const Engine& engine, double cores);

// The parts; times without the lower bounds that AnalyticModel adds.
Estimate gemm_estimate(const Engine& engine, const CostQuery& query, Clocks clocks);
// That its products draw at full clock where they take so long.
double drawn_watts(const Engine& engine, const CostQuery& query, double flops, double seconds);
Estimate attention_estimate(const Engine& engine, const CostQuery& query);
Estimate stream_estimate(const Engine& engine, const CostQuery& query, double bytes);
Estimate delta_rule_estimate(const Engine& engine, const CostQuery& query);
Estimate serial_estimate(const Engine& engine, const CostQuery& query);  // of any kind, on a serial core

}  // namespace moebius
