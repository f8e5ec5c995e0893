// NVIDIA AIConfigurator's database of kernels, as it stands in kernels/*.csv.gz beside the other tables: tens
// of thousands of rows a chip and table, from graph replays of serving frameworks' kernels. Its README says
// how they were measured and which rows are odd; what is left out here is counted with the reason.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "workloads/calibration/kernel_database.h"

namespace moebius {
namespace {

using Key = ProfileKey;

// A format of the table's GEMMs, best first: where two have the same types, the later one is a variant of the
// stack.
struct GemmFormat {
  std::string_view name;
  DType dtype = DType::kBf16;
  std::optional<DType> stored = {};  // of the weights, where it is another
  bool quantises = false;            // the times contain the quantisation of the activations
  std::string_view variant = {};
  const char* note = "";
};

constexpr std::array<GemmFormat, 7> kGemmFormats = {
    {{.name = "bfloat16", .note = "weights not in the cache, activations hot"},
     {.name = "fp8_block",
      .dtype = DType::kFp8,
      .quantises = true,
      .note = "1x128 and 128x128 block scales, BF16 out; includes the quantisation of the activations"},
     {.name = "fp8",
      .dtype = DType::kFp8,
      .quantises = true,
      .variant = "+fp8-rowwise",
      .note = "scales per tensor or per token; includes the quantisation of the activations"},
     {.name = "nvfp4",
      .dtype = DType::kFp4,
      .quantises = true,
      .note = "scales per 16 elements; includes the quantisation of the activations"},
     {.name = "sq", .dtype = DType::kInt8, .note = "SmoothQuant"},
     {.name = "int8_wo", .stored = DType::kInt8, .note = "INT8 weights under BF16 activations"},
     {.name = "int4_wo", .stored = DType::kInt4, .note = "INT4 weights under BF16 activations"}}};

// What vLLM calls FP8 on Intel's chip has FP8 weights only: its peak is that of BF16.
constexpr GemmFormat kFp8WeightsOnly{
    .name = "fp8", .stored = DType::kFp8, .note = "FP8 weights under BF16 activations"};

const GemmFormat* format_named(std::string_view name, std::string_view system) {
  if (system == "b60" && name == kFp8WeightsOnly.name) return &kFp8WeightsOnly;
  const auto found =
      std::find_if(kGemmFormats.begin(), kGemmFormats.end(), [&](const auto& f) { return f.name == name; });
  return found == kGemmFormats.end() ? nullptr : &*found;
}

std::size_t place_of(const GemmFormat& format) {
  return static_cast<std::size_t>(&format == &kFp8WeightsOnly ? kGemmFormats.size()
                                                              : &format - kGemmFormats.data());
}

// TensorRT-LLM's scales per tensor need the largest value of all before the first division: two passes.
std::size_t quantise_passes(const GemmFormat& format, const std::string& backend) {
  if (!format.quantises) return 0;
  return format.name == "fp8" && backend == "trtllm" ? 2 : 1;
}

// A weight gradient in 16 bits is a product of the same library, whose other layout of operands the tensor
// cores' loads turn. Narrower ones are cast anew along the tokens, by kernels that nobody measured here.
std::vector<std::string> products_of(const GemmFormat& format) {
  if (format.dtype != DType::kBf16 || format.stored) return {"gemm", "gemm_dgrad"};
  return {"gemm", "gemm_dgrad", "gemm_wgrad"};
}

ProfileTable gemm_table(const GemmFormat& format, const std::string& backend) {
  ProfileTable table =
      table_of("dense GEMM", products_of(format), format.dtype, {Key::kN, Key::kK}, {Key::kM});
  table.stored = format.stored;
  table.includes.assign(quantise_passes(format, backend), "quantise");
  table.note = format.note;
  // Look-ups carry the times unchanged. BF16 products ran at full clock all the same: PowerGovernor lowers
  // it.
  table.sustained = true;
  return table;
}

void read_gemm(Harvest& harvest, const std::string& system) {
  if (!harvest.has("kernels/gemm.csv.gz")) return;
  const Csv csv = harvest.open("kernels/gemm.csv.gz", system);
  Drafts drafts;
  std::set<std::string> block_scaled;  // stacks: their other FP8 GEMMs are a variant
  for (const CsvRow& row : csv.rows()) {
    const std::string stack = stack_of(csv, row);
    const GemmFormat* format = format_named(csv.text(row, "dtype"), system);
    if (format == nullptr) {
      ++drafts.left_out[stack]["an unknown number format"];
      continue;
    }
    if (format->name == "fp8_block") block_scaled.insert(stack);
    const std::string& backend = csv.text(row, "backend");
    TableDraft& draft = drafts.tables[{rank_of(backend), stack, place_of(*format)}];
    if (draft.rows.empty()) draft.table = gemm_table(*format, backend);
    const auto size = [&](const char* column) { return static_cast<double>(csv.whole(row, column, 1)); };
    draft.rows.push_back({{size("n"), size("k")}, {size("m")}, csv.number(row, "latency_us"), row.text});
  }
  for (auto& [key, draft] : drafts.tables) {
    draft.table.stack = key.stack;
    if (key.kind < kGemmFormats.size() && block_scaled.contains(key.stack))
      draft.table.stack += kGemmFormats[key.kind].variant;
  }
  drafts.add_to(harvest);
}

}  // namespace

void read_kernels(Harvest& harvest) {
  const std::optional<std::string> system = system_of(harvest);
  if (!system) return;
  read_quantise_kernels(harvest, *system);
  read_gemm(harvest, *system);
  // States its widths, which other attention does not: of two tables that know a kernel the first answers.
  read_latent_kernels(harvest, *system);
  read_attention_kernels(harvest, *system);
  read_expert_kernels(harvest, *system);
}

}  // namespace moebius
