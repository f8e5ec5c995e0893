// Dense GEMMs of AIConfigurator's database as questions to the model.
#include <array>
#include <filesystem>
#include <optional>

#include "workloads/calibration/csv.h"
#include "workloads/calibration/model_rows.h"

namespace moebius {
namespace {

constexpr std::uint64_t kOneIn = 7;  // of about 11,500 a chip, format and stack

// What a format multiplies, and how many passes over the activations quantise them first.
struct GemmFormat {
  std::string_view name;
  DType dtype = DType::kBf16;
};

constexpr std::array<GemmFormat, 5> kFormats = {{{"bfloat16", DType::kBf16},
                                                 {"fp8", DType::kFp8},
                                                 {"fp8_block", DType::kFp8},
                                                 {"nvfp4", DType::kFp4},
                                                 {"sq", DType::kInt8}}};

std::optional<GemmFormat> format_named(std::string_view name) {
  for (const GemmFormat& format : kFormats)
    if (format.name == name) return format;
  return {};
}

// TensorRT-LLM's per-tensor scales need the largest value before the first division: two passes. Other scales
// are found and used in one. SmoothQuant's INT8 activations come quantised.
int quantise_passes(std::string_view format, std::string_view backend) {
  if (format == "bfloat16" || format == "sq") return 0;
  return format == "fp8" && backend == "trtllm" ? 2 : 1;
}

}  // namespace

std::vector<ModelRow> gemm_model_rows(const std::string& directory, const Accelerator& chip) {
  const std::string system = database_system(chip);
  const std::string file = directory + "/kernels/gemm.csv.gz";
  if (system.empty() || !std::filesystem::exists(file)) return {};
  const Csv csv(file, system);
  std::vector<ModelRow> rows;
  for (const CsvRow& row : csv.rows()) {
    const auto format = format_named(csv.text(row, "dtype"));
    if (!format || !in_sample(row.text, kOneIn)) continue;
    const std::string& backend = csv.text(row, "backend");
    const auto size = [&](const char* column) {
      return static_cast<std::int64_t>(csv.number(row, column));
    };
    const std::int64_t m = size("m"), n = size("n"), k = size("k");
    ModelRow out{std::string(format->name), backend + "-" + csv.text(row, "version"), {}, {},
                 csv.number(row, "latency_us")};
    for (int pass = quantise_passes(format->name, backend); pass > 0; --pass)
      out.kernels.push_back({.kind = OpKind::kQuantise, .shape = {.m = m, .n = k}, .dtype = format->dtype,
                             .cores = chip.cores, .rows = {}});
    out.kernels.push_back({.kind = OpKind::kGemm, .shape = {.m = m, .n = n, .k = k}, .dtype = format->dtype,
                           .cores = chip.cores, .rows = {}});
    rows.push_back(std::move(out));
  }
  return rows;
}

}  // namespace moebius
