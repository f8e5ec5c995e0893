// Passes at memory speed in layers 3 and 4 of DeepSeek's published training trace, against the bytes model
// and, for casts, the table of layers 1 and 2. Shapes that no grid tells follow from the model: 4096 tokens,
// hidden 7168.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

#include "hw/catalog.h"
#include "workloads/cost/cost_source.h"
#include "workloads/calibration/csv.h"

#include "hw/error.h"
#undef CHECK  // ours; here it is Catch's
#include <catch2/catch.hpp>

namespace moebius {
namespace {

// Which op the n-th kernel of a name in a phase is; `rows` and `y` are the grid's first two numbers.
struct Pass {
  const char* phase;
  const char* kernel;
  std::size_t occurrence;
  const char* name;
  OpKind kind;
  DType dtype;
  std::int64_t n, k;  // columns; m is 4096, or the grid's first number where m_is_grid
  bool m_is_grid = false;
};

constexpr Pass kPasses[] = {
    {"attn(F)", "layer_norm::ln_fwd_kernel", 0, "norm 7168", OpKind::kNorm, DType::kBf16, 7168, 0},
    {"attn(F)", "layer_norm::ln_fwd_kernel", 1, "norm 1536", OpKind::kNorm, DType::kBf16, 1536, 0},
    {"attn(F)", "per_token_cast_to_fp8_with_channels", 0, "cast 7168", OpKind::kQuantise, DType::kFp8, 7168,
     0},
    {"attn(F)", "per_token_cast_to_fp8_with_channels", 4, "cast 16384", OpKind::kQuantise, DType::kFp8, 16384,
     0},
    {"attn(B)", "per_token_cast_to_fp8_with_channels", 3, "cast 24576", OpKind::kQuantise, DType::kFp8, 24576,
     0},
    {"attn(B)", "per_token_cast_to_fp8_with_channels", 4, "cast 32768", OpKind::kQuantise, DType::kFp8, 32768,
     0},
    {"attn(F)", "rotary_kernel", 1, "rotary of queries", OpKind::kRotary, DType::kBf16, 128 * 192, 0},
    {"attn(F)", "vectorized_elementwise_kernel", 0, "residual add", OpKind::kAdd, DType::kBf16, 7168, 0},
    {"mlp(F)", "swiglu_forward_with_weight_and_per_token_cast_to_fp8_with_channels_impl", 0,
     "swiglu of experts", OpKind::kActivation, DType::kBf16, 2048, 2, true},
    {"mlp(F)", "swiglu_forward_with_weight_and_per_token_cast_to_fp8_with_channels_impl", 1, "swiglu shared",
     OpKind::kActivation, DType::kBf16, 2048, 2, true},
    {"mlp(F)", "reduce_fused_impl", 0, "unpermute (grid: tokens)", OpKind::kUnpermute, DType::kBf16, 7168, 0,
     true},
    {"attn(B)", "layer_norm::ln_bwd_kernel", 3, "norm backward 7168", OpKind::kNormGrad, DType::kBf16, 7168,
     0},
};

std::optional<double> grid_rows(const std::string& grid) {
  double x = 0;
  if (std::sscanf(grid.c_str(), "%lfx", &x) != 1) return {};
  return x;
}

const Pass* pass_of(const std::string& phase, const std::string& kernel, std::size_t occurrence) {
  for (const Pass& pass : kPasses)
    if (phase == pass.phase && kernel == pass.kernel && occurrence == pass.occurrence) return &pass;
  return nullptr;
}

TEST_CASE("passes at memory speed, as the bytes model and the casts of layers 1 and 2 predict them") {
  const std::string file = MOEBIUS_SOURCE_DIR "/../shared/data/profile_data_train_kernels.csv";
  if (!std::filesystem::exists(file)) {
    WARN("skipped: the trace is not beside the project (../shared/data/profile_data_train_kernels.csv)");
    return;
  }
  const auto source = make_cost_source(Catalog().accelerator("h800-sxm"));
  const Csv csv(file);
  std::map<std::string, std::size_t> occurred;
  double casts = 0, cast_trace = 0;
  int passes = 0;
  for (const CsvRow& row : csv.rows()) {
    const std::string &layer = csv.text(row, "phase_instance"), &kernel = csv.text(row, "kernel");
    if ((layer != "3" && layer != "4") || csv.text(row, "stream") != "7") continue;
    const std::string& phase = csv.text(row, "launch_phase");
    const Pass* pass = pass_of(phase, kernel, occurred[phase + layer + kernel]++);
    if (pass == nullptr) continue;
    const auto rows = grid_rows(csv.text(row, "grid"));
    const std::int64_t m = pass->m_is_grid && rows ? static_cast<std::int64_t>(*rows) : 4096;
    const CostQuery query{.kind = pass->kind,
                          .shape = {.m = m, .n = pass->n, .k = pass->k, .heads = 128, .head_dim = 64},
                          .dtype = pass->dtype,
                          .cores = 112,
                          .rows = {}};
    const Cost cost = source->cost(query);
    const double us = csv.number(row, "dur_us");
    std::printf("%-5s %-8s %-28s %10.1f %10.1f %+7.1f%%  %s\n", layer.c_str(), phase.c_str(), pass->name, us,
                cost.seconds * 1e6, 100 * (cost.seconds * 1e6 / us - 1),
                std::string(to_string(cost.origin)).c_str());
    ++passes;
    // No pass of the trace may beat the bytes that it must move by more than the caches give.
    CHECK(cost.seconds * 1e6 < us * 1.6);
    if (pass->kind == OpKind::kQuantise) {
      casts += cost.seconds * 1e6;
      cast_trace += us;
    }
  }
  CHECK(passes == 2 * static_cast<int>(std::size(kPasses)));
  // The casts of one shape differ by 10% between the layers; two of the eight shapes are kept out of the
  // table.
  CHECK(casts == Approx(cast_trace).epsilon(0.15));
}

}  // namespace
}  // namespace moebius
