// Kernels whose board power was measured: the power tables of the kernel database.
#pragma once

#include <string>
#include <vector>

#include "hw/accelerator.h"

namespace moebius {

// A kernel under power: what it does a second.
struct PowerRow {
  DType dtype = DType::kBf16;  // that multiplies
  double flop_rate = 0, byte_rate = 0;
  double watts = 0, limit = 0;
  double microseconds = 0;
  bool kept_out = false;
};

struct PowerRows {
  std::vector<PowerRow> rows;
  int uneven = 0;  // left out: expert loads that the row does not state
  int cached = 0;  // left out: faster than the chip's memory or peak allows
};

// Those of one chip in `directory`/kernels/*_power.csv.gz; none when the files are absent or do not hold it.
// Throws as Csv.
PowerRows read_power_rows(const std::string& directory, const Accelerator& chip);

}  // namespace moebius
