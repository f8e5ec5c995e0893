// Latent attention (MLA; DeepSeek-V2, section 2.1) of DeepSeek-V2 and V3 as the kernel database has it.
#pragma once

#include <cstdint>

#include "hw/accelerator.h"
#include "models/op_kind.h"
#include "workloads/calibration/csv.h"

namespace moebius {

inline constexpr std::int32_t kLatent = 512, kRotary = 64, kNope = 128;  // values of a latent row, of a head

// Whether the row's kernel attends to the latent rows themselves: all decode, and prefill of SGLang on
// Hopper. Otherwise every head has keys and values of its own.
inline bool runs_absorbed(const Csv& csv, const CsvRow& row, const Accelerator& chip, bool prefill) {
  return !prefill || (csv.text(row, "backend") == "sglang" && chip.architecture == "hopper");
}

// Heads and widths of the attention; m, kv and groups stay zero.
inline Shape latent_heads(std::int32_t heads, bool absorbed) {
  return {.heads = heads,
          .kv_heads = absorbed ? 1 : heads,
          .head_dim = (absorbed ? kLatent : kNope) + kRotary,
          .v_dim = absorbed ? kLatent : kNope};
}

}  // namespace moebius
