// Dense GEMMs of AIConfigurator's database as questions to the model.
#include <array>
#include <filesystem>
#include <optional>

#include "workloads/calibration/csv.h"
#include "workloads/calibration/model/model_rows.h"
#include "workloads/cost/architecture.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr std::uint64_t kOneGemmIn = 7;  // of about 11,500 a chip, format and stack

// What a format multiplies.
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

constexpr std::int64_t kScaleBlock = 128;  // elements of k, and of n, under one scale

CostQuery pass_over(std::int64_t rows, std::int64_t columns, DType dtype, const Accelerator& chip) {
  return {.kind = OpKind::kQuantise,
          .shape = {.m = rows, .n = columns},
          .dtype = dtype,
          .cores = cores_of_chip(chip, OpKind::kQuantise)};
}

// The kernels before the product that quantise its activations; SmoothQuant's INT8 ones come quantised, but
// its rows are layers of TensorRT engines as the profiler times them, one by one between two events (steps of
// 1.024 us, at least 7 us, weight-only layers 8, against 3 of a BF16 kernel in a graph): each event counts as
// an empty kernel.
// TensorRT-LLM's per-tensor scales need the largest value before the first division: two passes, with two
// kernels on that one number between (its FP8 GEMMs take 8 to 11 us more than its BF16 ones at one row).
// SGLang on Blackwell packs the scales of both operands for the tensor unit before every product, in three
// kernels (the same DeepGEMM kernel takes 6 us longer there than in TensorRT-LLM).
std::vector<CostQuery> quantise_kernels(const Shape& shape, const GemmFormat& format,
                                        const std::string& backend, const Accelerator& chip) {
  if (format.name == "bfloat16") return {};
  const auto pass = [&](std::int64_t rows, std::int64_t columns) {
    return pass_over(rows, columns, format.dtype, chip);
  };
  if (format.name == "sq") return {pass(1, 1), pass(1, 1)};
  const CostQuery whole = pass(shape.m, shape.k);
  if (format.name == "fp8" && backend == "trtllm") return {whole, pass(1, 1), pass(1, 1), whole};
  const bool packs = format.name == "fp8_block" && backend == "sglang" &&
                     find_architecture(chip.architecture)->generation == "blackwell";
  if (!packs) return {whole};
  const std::int64_t blocks = (shape.k + kScaleBlock - 1) / kScaleBlock;
  return {whole, pass(shape.m, blocks), pass(shape.n, blocks), pass(shape.n, blocks)};
}

// Weights that come faster than memory streams stood in the cache: the replays cycle through a few copies,
// which the large caches of GDDR chips hold.
bool weights_from_cache(const Shape& shape, DType dtype, double microseconds, const Accelerator& chip) {
  const double bytes = static_cast<double>(shape.n) * static_cast<double>(shape.k) * element_bytes(dtype);
  return bytes / (chip.memory_rate.value * chip.memory_efficiency) > microseconds * 1e-6;
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
    if (!format || !in_sample(row.text, kOneGemmIn)) continue;
    const std::string& backend = csv.text(row, "backend");
    const auto size = [&](const char* column) { return static_cast<std::int64_t>(csv.number(row, column)); };
    const Shape shape{.m = size("m"), .n = size("n"), .k = size("k")};
    ModelRow out{std::string(format->name),
                 backend + "-" + csv.text(row, "version"),
                 quantise_kernels(shape, *format, backend, chip),
                 {},
                 csv.number(row, "latency_us")};
    if (weights_from_cache(shape, format->dtype, out.microseconds, chip)) continue;
    out.kernels.push_back(
        {.kind = OpKind::kGemm, .shape = shape, .dtype = format->dtype, .cores = chip.cores});
    rows.push_back(std::move(out));
  }
  return rows;
}

}  // namespace moebius
