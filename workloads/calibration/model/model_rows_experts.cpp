// Expert layers of AIConfigurator's database as questions to the model.
#include <filesystem>

#include "workloads/calibration/csv.h"
#include "workloads/calibration/experts/expert_rows.h"
#include "workloads/calibration/model/model_rows.h"
#include "workloads/cost/architecture.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr std::uint64_t kOneExpertRowIn = 23;  // of 6,000 to 20,000 a chip, format and stack

// How a stack runs the layer.
enum class Layer : std::uint8_t { kPlain, kSortedApart, kFused };

// TensorRT-LLM's CUTLASS and DeepGEMM layers sort in kernels of their own (1.0 has no other for BF16). The
// generated kernels, its own and FlashInfer's, sort while they choose the experts, and their first product
// gathers its rows and applies the activation.
Layer layer_of(const std::string& backend, const std::string& kernel, const std::string& format) {
  if (kernel.ends_with("flashinfer_trtllm_moe")) return Layer::kFused;
  if (backend != "trtllm") return Layer::kPlain;
  if (kernel == "moe_torch_flow" && format == "w4a8_mxfp4_mxfp8") return Layer::kFused;
  const bool cutlass = kernel == "moe_torch_flow_cutlass" || format == "bfloat16";
  return cutlass || kernel == "deepgemm" ? Layer::kSortedApart : Layer::kPlain;
}

// Rows are sorted by expert in one kernel up to 256 tokens and in three above (TensorRT-LLM's sources: the
// prefix sums of blocks, of the whole, and their merge), and a kernel writes the descriptors of the grouped
// products where copies into shared memory are asynchronous.
void add_sorting(ModelRow& out, const ExpertRow& row, const Accelerator& chip) {
  constexpr std::int64_t kTokensOfOneKernel = 256;
  const auto add = [&](std::int64_t tokens) {
    out.kernels.push_back({.kind = OpKind::kGate,
                           .shape = {.m = tokens, .n = row.layer.active, .k = row.layer.active},
                           .dtype = DType::kBf16,
                           .cores = cores_of_chip(chip, OpKind::kGate)});
  };
  for (int i = 0; i < (row.tokens <= kTokensOfOneKernel ? 1 : 3); ++i) add(row.tokens);
  if (find_architecture(chip.architecture)->asynchronous) add(1);
}

// DeepSeek's block scales keep the activation apart: it sees whole blocks of its results.
void fuse(ModelRow& out) {
  const bool activation = out.format != "fp8_block";
  std::erase_if(out.kernels, [&](const CostQuery& kernel) {
    return kernel.kind == OpKind::kPermute || (activation && kernel.kind == OpKind::kActivation);
  });
}

ModelRow model_row(const ExpertRow& row, const std::string& format, const Csv& csv, const CsvRow& text,
                   const Accelerator& chip) {
  const std::string& backend = csv.text(text, "backend");
  ModelRow out;
  out.format = format;
  out.stack = backend + "-" + csv.text(text, "version");
  out.microseconds = row.microseconds;
  out.rows = {row.routings, &row.routings->front()};
  out.kernels = expert_kernels(row.layer, row.tokens, *out.rows, chip.cores);
  const Layer layer = layer_of(backend, csv.text(text, "kernel"), format);
  if (layer == Layer::kSortedApart) add_sorting(out, row, chip);
  if (layer == Layer::kFused) fuse(out);
  return out;
}

}  // namespace

// Of rows that are means of several routings the first one stands for all.
std::vector<ModelRow> expert_model_rows(const std::string& directory, const Accelerator& chip) {
  const std::string system = database_system(chip);
  const std::string file = directory + "/kernels/moe.csv.gz";
  if (system.empty() || !std::filesystem::exists(file)) return {};
  const Csv csv(file, system);
  DrawnRoutings routings;
  std::vector<ModelRow> rows;
  for (const CsvRow& row : csv.rows()) {
    const ExpertFormat* format = find_expert_format(csv.text(row, "dtype"));
    if (format == nullptr || !in_sample(row.text, kOneExpertRowIn) || !reason_against(csv, row).empty())
      continue;
    const ExpertRow measured = expert_row(csv, row, *format, routings);
    if (measured.routings) rows.push_back(model_row(measured, format->name, csv, row, chip));
  }
  return rows;
}

}  // namespace moebius
