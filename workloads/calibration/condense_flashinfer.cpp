#include <algorithm>

#include <fmt/format.h>

#include "workloads/calibration/flashinfer_products.h"
#include "workloads/calibration/harvest.h"

namespace moebius {
namespace {

constexpr ProductTime kPublished[] = {{1024, 576, 7168, 28.704},
                                      {2048, 576, 7168, 41.216},
                                      {4096, 576, 7168, 63.488},
                                      {1024, 24576, 7168, 826.192},
                                      {2048, 24576, 7168, 1632.544}};

constexpr std::int64_t kColumns = 128, kTokens = 32;  // of a tile
constexpr double kOfDepth = 11.6e-6 / 7168, kBeside = 5.5e-6;

constexpr std::int64_t kWidths[] = {256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
constexpr std::int64_t kDepths[] = {256, 512, 1024, 2048, 7168, 18432};
constexpr std::int64_t kRows[] = {1024, 2048, 4096, 8192, 16384, 32768, 65536};

std::int64_t pieces(std::int64_t whole, std::int64_t piece) {
  return (whole + piece - 1) / piece;
}

}  // namespace

std::span<const ProductTime> published_flashinfer_products() {
  return kPublished;
}

double flashinfer_product_seconds(const Accelerator& chip, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t strips = pieces(m, kTokens);
  const auto waves = static_cast<double>(pieces(pieces(n, kColumns) * strips, chip.cores));
  const auto weights = static_cast<double>(n * k);  // bytes
  const double reads = weights > chip.l2.value ? weights * static_cast<double>(strips) : weights;
  return kBeside + std::max(waves * static_cast<double>(k) * kOfDepth,
                            reads / (chip.memory_rate.value * chip.memory_efficiency));
}

void read_flashinfer_products(Harvest& harvest) {
  if (!harvest.is_ours("b200-sxm")) return;
  harvest.add_source({"FLASHINFER",
                      "sgl-project/sglang pull request 13528, benchmark_deepgemm_fp8_gemm_blackwell.py on a "
                      "B200, shapes of tensor parallelism of 4",
                      "Apache-2.0", "2025-11-18"});
  TableDraft draft;
  draft.table = table_of("dense GEMM", {"gemm", "gemm_dgrad"}, DType::kFp8, {ProfileKey::kN, ProfileKey::kK},
                         {ProfileKey::kM});
  draft.table.stack = "trtllm-1.3.0rc20+flashinfer";
  draft.table.source = "FLASHINFER";
  draft.table.cores = harvest.chip.cores;
  draft.table.sustained = draft.table.fitted = true;
  draft.table.note =
      "a law of tiles that meets five published rows within 2.5%; activations already quantised";
  draft.table.where = {{ProfileKey::kM, static_cast<double>(kRows[0]), 1e9}};
  for (const std::int64_t n : kWidths)
    for (const std::int64_t k : kDepths)
      for (const std::int64_t m : kRows)
        draft.rows.push_back({{static_cast<double>(n), static_cast<double>(k)},
                              {static_cast<double>(m)},
                              flashinfer_product_seconds(harvest.chip, m, n, k) * 1e6,
                              ""});
  harvest.profile.tables.push_back(lay_rows(std::move(draft)));
}

}  // namespace moebius
