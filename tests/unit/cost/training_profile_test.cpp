// Layers 3 and 4 of DeepSeek's published training trace, kernel by kernel, against what the H800 profile and
// the model say. Forward and dgrad GEMMs, experts and attention forward are predictions (their tables were
// measured elsewhere); weight gradients and attention backward come from layers 1 and 2 of the same trace.

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "hw/catalog.h"
#include "workloads/cost/cost_source.h"
#include "workloads/calibration/csv.h"

#include "hw/error.h"
#undef CHECK  // ours; here it is Catch's
#include <catch2/catch.hpp>

namespace moebius {
namespace {

constexpr int kCores = 112;  // of 132: communication holds 20

struct Kernel {
  std::string layer, name;
  CostQuery query;
  double microseconds = 0;
};

CostQuery attention(OpKind kind) {
  return {
      .kind = kind,
      .shape =
          {.m = 4096, .groups = 1, .heads = 128, .kv_heads = 128, .head_dim = 192, .v_dim = 128, .kv = 4096},
      .dtype = DType::kBf16,
      .cores = kCores,
      .rows = {}};
}

CostQuery matrix(const Csv& csv, const CsvRow& row) {
  const std::string& name = csv.text(row, "operator_inferred");
  const bool routed = name.starts_with("routed"), gradient = name.find("wgrad") != std::string::npos;
  const auto size = [&](const char* column) { return static_cast<std::int64_t>(csv.number(row, column)); };
  Shape shape{.m = size("m_or_tokens"), .n = size("n"), .k = size("k")};
  if (routed) shape.groups = 4;
  const bool bf16 = csv.text(row, "kernel").starts_with("sm90_xmma");
  return {.kind = routed ? OpKind::kGroupedGemm : (gradient ? OpKind::kGemmWgrad : OpKind::kGemm),
          .shape = shape,
          .dtype = bf16 ? DType::kBf16 : DType::kFp8,
          .cores = kCores,
          .rows = {}};
}

// The three kernels of attention backward count as one op.
std::vector<Kernel> kernels_of(const Csv& csv) {
  std::vector<Kernel> kernels;
  std::map<std::string, double> backward;
  for (const CsvRow& row : csv.rows()) {
    const std::string& layer = csv.text(row, "layer_instance");
    const std::string& name = csv.text(row, "operator_inferred");
    if (layer != "3" && layer != "4") continue;
    const double us = csv.number(row, "dur_us");
    if (name.starts_with("FlashAttnBwd") || name.starts_with("flash attention bwd")) {
      backward[layer] += us;
    } else if (name.starts_with("flash attention fwd")) {
      kernels.push_back({layer, "attention forward", attention(OpKind::kAttention), us});
    } else if (!csv.empty(row, "n")) {
      kernels.push_back({layer, name, matrix(csv, row), us});
    }
  }
  for (const auto& [layer, us] : backward)
    kernels.push_back({layer, "attention backward, three kernels", attention(OpKind::kAttentionGrad), us});
  return kernels;
}

TEST_CASE("tensor kernels of a training layer come out within the tolerance of the trace") {
  const std::string file = MOEBIUS_SOURCE_DIR "/../shared/data/profile_data_train_ops.csv";
  if (!std::filesystem::exists(file)) {
    WARN("skipped: the trace is not beside the project (../shared/data/profile_data_train_ops.csv)");
    return;
  }
  const auto source = make_cost_source(Catalog().accelerator("h800-sxm"));
  const std::vector<Kernel> kernels = kernels_of(Csv(file));
  REQUIRE(kernels.size() > 50);
  double ours = 0, measured = 0;
  std::printf("%-5s %-36s %10s %10s %8s  %s\n", "layer", "kernel", "trace us", "ours us", "error", "from");
  for (const Kernel& kernel : kernels) {
    const Cost cost = source->cost(kernel.query);
    const double error = cost.seconds * 1e6 / kernel.microseconds - 1;
    std::printf("%-5s %-36.36s %10.1f %10.1f %+7.1f%%  %s\n", kernel.layer.c_str(), kernel.name.c_str(),
                kernel.microseconds, cost.seconds * 1e6, 100 * error,
                std::string(to_string(cost.origin)).c_str());
    ours += cost.seconds * 1e6;
    measured += kernel.microseconds;
    INFO(kernel.name);
    // Of 50 us, kv_a (n = 576: 160 tiles in two waves) takes 52 or 57, the router (FP32 weights) 45 or 52:
    // one launch more or less is 10%.
    const bool small = kernel.microseconds < 70;
    CHECK(std::abs(error) < (small ? 0.30 : 0.10));
  }
  std::printf("%-42s %10.1f %10.1f %+7.1f%%\n", "both layers", measured, ours, 100 * (ours / measured - 1));
  CHECK(ours == Approx(measured).epsilon(0.04));
}

}  // namespace
}  // namespace moebius
