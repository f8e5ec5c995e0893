// Attention of AIConfigurator's database as questions to the model. A row covers what a serving framework
// runs for attention: beside the kernel itself the passes that rotate new queries and keys and write the
// cache, and those that look up where a batch's sequences stand.
#include <filesystem>

#include "workloads/calibration/csv.h"
#include "workloads/calibration/kernel_database.h"
#include "workloads/calibration/latent_attention.h"
#include "workloads/calibration/model/model_rows.h"
#include "workloads/cost/architecture.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr std::uint64_t kOneAttentionIn = 11;  // of up to 20,000 a chip, format and stack
constexpr std::uint64_t kOneOfLatent = 3;

DType dtype_named(const std::string& name) {
  return name == "fp8" ? DType::kFp8 : DType::kBf16;
}

// One file, and what its columns are called.
struct AttentionFile {
  const char* name;
  const char* arithmetic;  // column
  bool prefill, latent;
  std::uint64_t one_in;
};

// Passes of memory beside the attention: of so many rows and columns, and kernels that move next to nothing.
struct Passes {
  std::int64_t rows = 0, columns = 0;
  int small_kernels = 0;
};

// SGLang writes new keys and values to the cache, and in prefill FlashAttention's schedule is prepared.
// TensorRT-LLM rotates queries and keys too (of latent attention the rotary 64 of each head), in prefill
// after kernels that count the batch's tokens.
Passes passes_of(const Shape& shape, bool trtllm, bool prefill, bool latent) {
  const std::int64_t cached = latent ? 576 : std::int64_t{shape.kv_heads} * (shape.head_dim + shape.v_dim);
  if (!trtllm) return {shape.m, cached, prefill ? 1 : 0};
  const std::int64_t rotated = std::int64_t{shape.heads} * (!latent ? shape.head_dim : prefill ? 128 : 192);
  return {shape.m, cached + rotated, prefill ? 2 : 0};
}

// Whether SGLang's decode rows hold the write of the cache as a kernel: TensorRT-LLM's kernel in 0.5.10 takes
// 2 us less on B300 than in 0.5.14 on B200 and GB300, and FlashInfer's 4 to 6 us at two keys are one
// kernel's.
bool writes_cache(const Csv& csv, const CsvRow& row, bool prefill) {
  const std::string& kernel = csv.text(row, "kernel");
  if (prefill || csv.text(row, "backend") != "sglang") return true;
  if (kernel == "flashinfer") return csv.text(row, "kv_dtype") == "fp8";
  return kernel != "trtllm_mha" || csv.text(row, "version") != "0.5.10";
}

// Columns of the casts that SGLang runs before an FP8 cache. TensorRT-LLM's kernel in it takes queries, keys
// and values that three kernels cast (6 us at one short sequence of B200). FlashAttention 3 and FlashInfer
// have keys and values cast together (2 us on RTX PRO 6000), and the first the queries too in decoding (3 us
// on H100); prefill gets FP8 ones. Rows of 0.5.10 hold no casts: their times are the same with either cache.
std::vector<std::int64_t> cast_columns(const Csv& csv, const CsvRow& row, const Shape& shape, bool prefill) {
  if (csv.text(row, "backend") != "sglang" || csv.text(row, "kv_dtype") != "fp8") return {};
  if (csv.text(row, "version") == "0.5.10") return {};
  const std::string& kernel = csv.text(row, "kernel");
  const std::int64_t queries = std::int64_t{shape.heads} * shape.head_dim;
  const std::int64_t keys = std::int64_t{shape.kv_heads} * shape.head_dim;
  const std::int64_t values = std::int64_t{shape.kv_heads} * shape.v_dim;
  if (kernel == "trtllm_mha") return {queries, keys, values};
  if (kernel == "fa3" && !prefill) return {queries, keys + values};
  return {keys + values};
}

// Rows of kernels that are not what the model is of: SGLang's Triton kernels, which it falls back to where
// the others cannot, and its latent attention on Hopper that converts an FP8 cache first; TensorRT-LLM's
// decode without parts of the keys, which reads them with one core a sequence (latent attention before Hopper
// and on GeForce cores, and over 32 heads a KV head); prefill on Arc B60 that ignores the window.
bool is_fallback(const Csv& csv, const CsvRow& row, const AttentionFile& file, const Accelerator& chip,
                 const Shape& shape) {
  if (csv.text(row, "kernel") == "triton") return true;
  if (file.prefill && shape.window > 0 && chip.architecture == "xe2") return true;
  const bool trtllm = csv.text(row, "backend") == "trtllm", hopper = chip.architecture == "hopper";
  if (file.latent && hopper && !trtllm && csv.text(row, "kv_dtype") == "fp8") return true;
  if (file.prefill || !trtllm) return false;
  if (file.latent) return !hopper && find_architecture(chip.architecture)->generation != "blackwell";
  return shape.heads > 32 * shape.kv_heads;
}

Shape shape_of(const Csv& csv, const CsvRow& row, const AttentionFile& file, const Accelerator& chip) {
  const auto number = [&](const char* column) { return static_cast<std::int64_t>(csv.number(row, column)); };
  const auto count = [&](const char* column) { return static_cast<std::int32_t>(number(column)); };
  Shape shape =
      file.latent ? latent_heads(count("num_heads"), runs_absorbed(csv, row, chip, file.prefill)) : Shape{};
  shape.groups = count("batch");
  shape.kv = number(file.prefill ? "seq_len" : "kv_len");
  shape.m = file.prefill ? shape.groups * shape.kv : shape.groups;
  if (file.latent) return shape;
  shape.heads = count("num_heads");
  shape.kv_heads = count("num_kv_heads");
  shape.head_dim = shape.v_dim = count("head_dim");
  shape.window = count("window");
  return shape;
}

ModelRow model_row(const Csv& csv, const CsvRow& row, const AttentionFile& file, const Accelerator& chip,
                   const Shape& shape) {
  const std::string &arithmetic = csv.text(row, file.arithmetic), &cache = csv.text(row, "kv_dtype");
  ModelRow out{arithmetic + (cache == arithmetic ? "" : ", " + cache + " cache"),
               stack_of(csv, row),
               {},
               {},
               csv.number(row, "latency_us")};
  CostQuery query{
      .kind = OpKind::kAttention, .shape = shape, .dtype = dtype_named(arithmetic), .cores = chip.cores};
  // FlashInfer's prefill reads the new keys and values before they are cast for the cache.
  const bool reads_cache = !file.prefill || csv.text(row, "kernel") != "flashinfer";
  if (cache != arithmetic && reads_cache) query.stored = dtype_named(cache);
  // Each head's queries, keys and values of a latent cache in FP8 are cast before they are multiplied; before
  // Hopper they are multiplied in BF16.
  const bool before_hopper =
      chip.architecture == "ampere" || chip.architecture == "ampere-geforce" || chip.architecture == "ada";
  const bool casts_latent = file.latent && file.prefill && cache == "fp8" && !before_hopper;
  if (casts_latent) query.dtype = DType::kFp8;
  query.hot = true;
  out.kernels.push_back(query);
  const Passes passes = passes_of(shape, csv.text(row, "backend") == "trtllm", file.prefill, file.latent);
  const int general = cores_of_chip(chip, OpKind::kConcat);
  const auto pass = [&](std::int64_t rows, std::int64_t columns) {
    out.kernels.push_back({.kind = OpKind::kConcat, .shape = {.m = rows, .n = columns}, .cores = general});
  };
  if (writes_cache(csv, row, file.prefill)) pass(passes.rows, passes.columns);
  for (int kernel = 0; kernel < passes.small_kernels; ++kernel) pass(1, 1);
  const auto cast = [&](std::int64_t columns) {
    out.kernels.push_back({.kind = OpKind::kQuantise,
                           .shape = {.m = shape.m, .n = columns},
                           .dtype = DType::kFp8,
                           .cores = general});
  };
  if (!file.latent)
    for (const std::int64_t columns : cast_columns(csv, row, shape, file.prefill)) cast(columns);
  if (casts_latent) cast(std::int64_t{shape.heads} * (2 * (kNope + kRotary) + kNope));
  return out;
}

void read(const std::string& directory, const Accelerator& chip, const AttentionFile& file,
          std::vector<ModelRow>& rows) {
  const std::string path = directory + "/kernels/" + file.name, system = database_system(chip);
  if (system.empty() || !std::filesystem::exists(path)) return;
  const Csv csv(path, system);
  for (const CsvRow& row : csv.rows()) {
    if (!in_sample(row.text, file.one_in)) continue;
    const Shape shape = shape_of(csv, row, file, chip);
    if (file.prefill && shape.kv < 2) continue;  // that is decode
    if (!is_fallback(csv, row, file, chip, shape)) rows.push_back(model_row(csv, row, file, chip, shape));
  }
}

std::vector<ModelRow> rows_of(const std::string& directory, const Accelerator& chip,
                              const AttentionFile& file) {
  std::vector<ModelRow> rows;
  read(directory, chip, file, rows);
  return rows;
}

}  // namespace

std::vector<ModelRow> prefill_model_rows(const std::string& directory, const Accelerator& chip) {
  return rows_of(directory, chip, {"context_attention.csv.gz", "attn_dtype", true, false, kOneAttentionIn});
}

std::vector<ModelRow> decode_model_rows(const std::string& directory, const Accelerator& chip) {
  return rows_of(directory, chip,
                 {"generation_attention.csv.gz", "attn_dtype", false, false, kOneAttentionIn});
}

std::vector<ModelRow> latent_prefill_model_rows(const std::string& directory, const Accelerator& chip) {
  return rows_of(directory, chip, {"mla_context.csv.gz", "mla_dtype", true, true, kOneOfLatent});
}

std::vector<ModelRow> latent_decode_model_rows(const std::string& directory, const Accelerator& chip) {
  return rows_of(directory, chip, {"mla_generation.csv.gz", "mla_dtype", false, true, kOneOfLatent});
}

}  // namespace moebius
