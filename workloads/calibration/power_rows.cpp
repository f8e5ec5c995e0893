#include "workloads/calibration/power_rows.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <functional>
#include <optional>

#include "hw/error.h"
#include "hw/json_text.h"
#include "models/layer_math.h"
#include "workloads/calibration/condense.h"
#include "workloads/calibration/csv.h"
#include "workloads/calibration/model/model_rows.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

struct PowerFormat {
  std::string_view name;
  DType dtype = DType::kBf16;
  std::optional<DType> stored = {};
};
constexpr std::array<PowerFormat, 7> kPowerFormats = {{{"bfloat16"},
                                                       {"fp8_block", DType::kFp8},
                                                       {"fp8", DType::kFp8},
                                                       {"nvfp4", DType::kFp4},
                                                       {"int4_wo", DType::kBf16, DType::kInt4},
                                                       {"w4a16_mxfp4", DType::kBf16, DType::kFp4},
                                                       {"w4a8_mxfp4_mxfp8", DType::kFp8, DType::kFp4}}};

const PowerFormat& power_format(const Csv& csv, const CsvRow& row, const char* column) {
  const std::string& name = csv.text(row, column);
  for (const PowerFormat& format : kPowerFormats)
    if (format.name == name) return format;
  throw input_error(
      fmt::format("{}: unknown number format {}", csv.place(row, column), json_excerpt(name)));
}

class PowerReader {
 public:
  PowerReader(const std::string& directory, const Accelerator& chip)
      : directory_(directory), system_(database_system(chip)), chip_(chip), model_(chip) {}

  PowerRows read() {
    if (system_.empty()) return {};
    each("gemm_power", [&](const Csv& csv, const CsvRow& row) { add(csv, row, gemm(csv, row)); });
    each("context_attention_power",
         [&](const Csv& csv, const CsvRow& row) { add(csv, row, {attention(csv, row, "seq_len", true)}); });
    each("generation_attention_power",
         [&](const Csv& csv, const CsvRow& row) { add(csv, row, {attention(csv, row, "kv_len", false)}); });
    each("moe_power", [&](const Csv& csv, const CsvRow& row) {
      csv.text(row, "distribution") == "balanced" ? add(csv, row, experts(csv, row)) : void(++all_.uneven);
    });
    return std::move(all_);
  }

 private:
  void each(const char* table, const std::function<void(const Csv&, const CsvRow&)>& visit) const {
    const std::string file = fmt::format("{}/kernels/{}.csv.gz", directory_, table);
    if (!std::filesystem::exists(file)) return;
    const Csv csv(file, system_);
    for (const CsvRow& row : csv.rows()) visit(csv, row);
  }

  static std::int64_t whole(const Csv& csv, const CsvRow& row, const char* column) {
    return csv.whole(row, column, 1);
  }
  static std::int32_t count(const Csv& csv, const CsvRow& row, const char* column) {
    return csv.whole(row, column);
  }

  // Of a board that runs; what is fitted to them divides by them.
  static double watts(const Csv& csv, const CsvRow& row, const char* column) {
    const double read = csv.number(row, column);
    if (read <= 0)
      throw input_error(fmt::format("{}: expected more than 0 W, found {}", csv.place(row, column),
                                    json_excerpt(csv.text(row, column))));
    return read;
  }

  CostQuery query(OpKind kind, const Shape& shape, const PowerFormat& format) const {
    return {.kind = kind,
            .shape = shape,
            .dtype = format.dtype,
            .cores = chip_.cores,
            .rows = {},
            .stored = format.stored};
  }

  std::vector<CostQuery> gemm(const Csv& csv, const CsvRow& row) const {
    const Shape shape{.m = whole(csv, row, "m"), .n = whole(csv, row, "n"), .k = whole(csv, row, "k")};
    return {query(OpKind::kGemm, shape, power_format(csv, row, "dtype"))};
  }

  CostQuery attention(const Csv& csv, const CsvRow& row, const char* length, bool prefill) const {
    PowerFormat format = power_format(csv, row, "attn_dtype");
    format.stored = power_format(csv, row, "kv_dtype").dtype;
    Shape shape{.groups = count(csv, row, "batch"),
                .heads = count(csv, row, "num_heads"),
                .kv_heads = count(csv, row, "num_kv_heads"),
                .head_dim = count(csv, row, "head_dim"),
                .v_dim = count(csv, row, "head_dim"),
                .kv = whole(csv, row, length),
                .window = count(csv, row, "window")};
    shape.m = shape.groups * (prefill ? shape.kv : 1);
    return query(OpKind::kAttention, shape, format);
  }

  // Gate and up projection, then down: two grouped GEMMs, all experts with as many rows.
  std::vector<CostQuery> experts(const Csv& csv, const CsvRow& row) const {
    const std::int64_t hidden = whole(csv, row, "hidden"),
                       inter = whole(csv, row, "inter") / whole(csv, row, "tp");
    const std::int64_t ep = whole(csv, row, "ep");
    const std::int64_t rows =
        std::max<std::int64_t>(1, whole(csv, row, "num_tokens") * whole(csv, row, "topk") / ep);
    const auto groups =
        static_cast<std::int32_t>(std::max<std::int64_t>(1, whole(csv, row, "num_experts") / ep));
    const PowerFormat& format = power_format(csv, row, "dtype");
    return {query(OpKind::kGroupedGemm, {.m = rows, .n = 2 * inter, .k = hidden, .groups = groups}, format),
            query(OpKind::kGroupedGemm, {.m = rows, .n = hidden, .k = inter, .groups = groups}, format)};
  }

  void add(const Csv& csv, const CsvRow& row, const std::vector<CostQuery>& kernels) {
    const double us = csv.number(row, "latency_us");
    PowerRow out{.dtype = executed_dtype(chip_, kernels.front().dtype),
                 .watts = watts(csv, row, "power_w"),
                 .limit = watts(csv, row, "power_limit_w"),
                 .microseconds = us,
                 .kept_out = is_kept_out({.site = {}, .at = {}, .microseconds = us, .text = row.text})};
    double bound = 0;
    for (const CostQuery& kernel : kernels) {
      out.flop_rate += op_flops(kernel.kind, kernel.shape).value / (us * 1e-6);
      out.byte_rate += model_.estimate(kernel, Clocks::kSustained).memory_bytes / (us * 1e-6);
      bound += roofline(chip_, kernel).seconds();
    }
    bound * 1e6 > us ? void(++all_.cached) : all_.rows.push_back(out);
  }

  std::string directory_, system_;
  const Accelerator& chip_;
  AnalyticModel model_;
  PowerRows all_;
};

}  // namespace

PowerRows read_power_rows(const std::string& directory, const Accelerator& chip) {
  return PowerReader(directory, chip).read();
}

}  // namespace moebius
