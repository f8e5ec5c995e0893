#include "workloads/calibration/page/latent_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "hw/median.h"
#include "models/layer_math.h"
#include "workloads/calibration/kernel_database.h"
#include "workloads/calibration/latent_attention.h"
#include "workloads/calibration/model/model_rows.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/table.h"

namespace moebius {
namespace {

constexpr std::int64_t kHidden = 7168, kQueryRank = 1536;  // DeepSeek-V3
constexpr std::uint64_t kOneIn = 5;                        // of about 15,000 rows a chip and stack

class Ops {
 public:
  Ops(const LatentModule& module, const Accelerator& chip)
      : chip_(chip), gemm_(module.gemm), rows_(module.sequences * module.queries) {}

  void gemm(std::int64_t n, std::int64_t k) {
    add(OpKind::kGemm, {.m = rows_, .n = n, .k = k}, gemm_).fused_quantise = gemm_ != DType::kBf16;
  }
  void pass(OpKind kind, std::int64_t n, std::int32_t heads = 0, std::int32_t width = 0) {
    add(kind, {.m = rows_, .n = n, .heads = heads, .head_dim = width}, DType::kBf16);
  }
  void of_heads(std::int32_t heads, std::int64_t n, std::int64_t k) {
    add(OpKind::kGroupedGemm, {.m = rows_ * heads, .n = n, .k = k, .groups = heads, .heads = heads},
        DType::kBf16);
  }
  CostQuery& add(OpKind kind, const Shape& shape, DType dtype) {
    return queries_.emplace_back(
        CostQuery{.kind = kind, .shape = shape, .dtype = dtype, .cores = cores_of_chip(chip_, kind)});
  }
  std::vector<CostQuery> take() { return std::move(queries_); }

 private:
  const Accelerator& chip_;
  DType gemm_;
  std::int64_t rows_;
  std::vector<CostQuery> queries_;
};

// The weights pass through L2, too: the cache is found there when both fit.
bool fits_in_l2(const std::vector<CostQuery>& queries, const Accelerator& chip) {
  double bytes = 0;
  for (const CostQuery& query : queries) bytes += least_bytes(query);
  return bytes <= chip.l2.value;
}

struct Stack {
  std::string chip, name, phase;
  auto operator<=>(const Stack&) const = default;
};

using Errors = std::map<Stack, std::vector<double>>;

class Composer {
 public:
  Composer(const Profile& profile, std::string_view stack)
      : model_(profile.reference), chip_(profile.reference), tables_({profile}, stack) {}

  double seconds(const LatentModule& module) const {
    double sum = 0;
    for (const CostQuery& query : ops_of(module, chip_)) {
      const auto cost = tables_.cost(model_, query, Clocks::kBurst);
      sum += cost ? cost->seconds : model_.estimate(query, Clocks::kBurst).seconds;
    }
    return sum;
  }

 private:
  AnalyticModel model_;
  Accelerator chip_;
  MeasuredTables tables_;
};

DType dtype_named(const std::string& name) {
  if (name == "nvfp4") return DType::kFp4;
  return name.starts_with("fp8") ? DType::kFp8 : DType::kBf16;
}

struct ModuleFile {
  const char* name;
  const char* gemm;    // column of the projections' format
  const char* length;  // column
  bool prefill;
};

// SGLang's prefill was timed with half a millisecond of its host's work: long ones alone tell of the kernels.
bool is_timed_on_host(const Csv& csv, const CsvRow& row, const LatentModule& module) {
  constexpr std::int64_t kLeastTokens = 16384;
  return csv.text(row, "backend") == "sglang" && module.queries > 1 &&
         module.sequences * module.queries < kLeastTokens;
}

LatentModule module_of(const Csv& csv, const CsvRow& row, const ModuleFile& file, bool prefill) {
  LatentModule module{.heads = static_cast<std::int32_t>(csv.number(row, "num_heads")),
                      .sequences = static_cast<std::int32_t>(csv.number(row, "batch")),
                      .keys = static_cast<std::int64_t>(csv.number(row, file.length)),
                      .gemm = dtype_named(csv.text(row, file.gemm)),
                      .cache = dtype_named(csv.text(row, "kv_dtype"))};
  if (prefill) module.queries = module.keys;
  return module;
}

// The stack whose tables tell the ops: this one, or the same framework's of another version; empty: all.
std::string stack_for(const Profile& profile, const std::string& stack) {
  std::string related;
  for (const ProfileTable& table : profile.tables) {
    if (table.stack == stack) return stack;
    const bool same = table.stack.substr(0, table.stack.find('-')) == stack.substr(0, stack.find('-'));
    if (same && related.empty()) related = table.stack;
  }
  return related;
}

const Composer& composer_of(const Profile& profile, const std::string& stack,
                            std::map<std::string, Composer>& composers) {
  const auto found = composers.find(stack);
  if (found != composers.end()) return found->second;
  return composers.try_emplace(stack, profile, stack_for(profile, stack)).first->second;
}

void read(const std::string& from, const Profile& profile, const ModuleFile& file, Errors& errors) {
  const std::string path = from + "/kernels/" + file.name, system = database_system(profile.reference);
  if (system.empty() || !std::filesystem::exists(path)) return;
  const Csv csv(path, system);
  std::map<std::string, Composer> composers;
  for (const CsvRow& row : csv.rows()) {
    if (!in_sample(row.text, kOneIn)) continue;
    const bool sglang = csv.text(row, "backend") == "sglang";
    const bool prefill = sglang ? csv.text(row, "phase") == "context" : file.prefill;
    const LatentModule module = module_of(csv, row, file, prefill);
    if ((prefill && module.queries < 2) || is_timed_on_host(csv, row, module)) continue;
    const std::string stack = stack_of(csv, row);
    const double told = composer_of(profile, stack, composers).seconds(module);
    const double error = told * 1e6 / csv.number(row, "latency_us") - 1;
    errors[{profile.accelerator, stack, prefill ? "prefill" : "decode"}].push_back(error);
  }
}

double median_size(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  return upper_median(std::move(errors));
}

}  // namespace

std::vector<CostQuery> ops_of(const LatentModule& module, const Accelerator& chip) {
  const std::int32_t heads = module.heads;
  const bool decode = module.queries == 1;
  Ops ops(module, chip);
  ops.gemm(kQueryRank + kLatent + kRotary, kHidden);
  ops.pass(OpKind::kNorm, kQueryRank);
  ops.pass(OpKind::kNorm, kLatent);
  ops.gemm(std::int64_t{heads} * (kNope + kRotary), kQueryRank);
  if (decode) {
    ops.of_heads(heads, kLatent, kNope);
  } else {
    ops.gemm(std::int64_t{heads} * 2 * kNope, kLatent);
    ops.pass(OpKind::kConcat, std::int64_t{heads} * (kNope + kRotary));
  }
  ops.pass(OpKind::kRotary, std::int64_t{heads + 1} * kRotary, heads + 1, kRotary);
  Shape shape = latent_heads(heads, decode);
  shape.m = module.sequences * module.queries;
  shape.groups = module.sequences;
  shape.kv = module.keys;
  ops.add(OpKind::kAttention, shape, DType::kBf16);
  if (decode) ops.of_heads(heads, kNope, kLatent);
  ops.gemm(kHidden, std::int64_t{heads} * kNope);
  std::vector<CostQuery> queries = ops.take();
  const auto attention = std::find_if(queries.begin(), queries.end(), [](const CostQuery& query) {
    return query.kind == OpKind::kAttention;
  });
  if (module.cache != DType::kBf16) attention->stored = module.cache;
  attention->hot = fits_in_l2(queries, chip);
  return queries;
}

std::string composition_table(const std::string& from, const std::vector<Profile>& profiles) {
  const ModuleFile files[] = {{"mla_module_context.csv.gz", "gemm_dtype", "seq_len", true},
                              {"mla_module_generation.csv.gz", "gemm_dtype", "kv_len", false},
                              {"wideep_mla.csv.gz", "mla_dtype", "seq_len", false}};
  Errors errors;
  for (const Profile& profile : profiles)
    for (const ModuleFile& file : files) read(from, profile, file, errors);
  if (errors.empty()) return {};
  std::string text =
      "| chip | stack | phase | rows | median % | p90 % | bias % |\n|---|---|---|--:|--:|--:|--:|\n";
  for (const auto& [key, of_rows] : errors) {
    std::vector<double> sizes = of_rows;
    for (double& error : sizes) error = std::abs(error);
    std::sort(sizes.begin(), sizes.end());
    text += fmt::format("| {} | {} | {} | {} | {:.1f} | {:.1f} | {:+.1f} |\n", key.chip, key.name, key.phase,
                        of_rows.size(), 100 * median_size(of_rows), 100 * sizes[sizes.size() * 9 / 10],
                        100 * upper_median(of_rows));
  }
  return text;
}

}  // namespace moebius
