#include "workloads/calibration/experts/expert_rows.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/calibration/condense.h"

namespace moebius {
namespace {

constexpr std::uint64_t kDraws = 5;  // as many routings as the collector times for one row

constexpr std::string_view kPowerLaw = "power_law_", kRebalanced = "_eplb";

int count(const Csv& csv, const CsvRow& row, const char* column) {
  return csv.whole(row, column, 1);
}

// Every rank has as many of them.
void expect_shared(const Csv& csv, const CsvRow& row, const char* column, int ranks) {
  if (count(csv, row, column) % ranks != 0)
    throw input_error(fmt::format("{}: expected a multiple of ep, {}, found {}", csv.place(row, column),
                                  ranks, count(csv, row, column)));
}

}  // namespace

const std::vector<ExpertFormat>& expert_formats() {
  static const std::vector<ExpertFormat> formats = {
      {"bfloat16", DType::kBf16, {}, "", ""},
      {"fp8_block", DType::kFp8, {}, "", "1x128 and 128x128 block scales"},
      {"fp8", DType::kFp8, {}, "+fp8-rowwise", "scales per tensor or per token"},
      {"nvfp4", DType::kFp4, {}, "", "scales per 16 elements"},
      {"w4a8_mxfp4_mxfp8", DType::kFp8, DType::kFp4, "", "MXFP4 weights, MXFP8 activations"},
      {"w4a16_mxfp4", DType::kBf16, DType::kFp4, "", "MXFP4 weights, BF16 activations"},
      {"int4_wo", DType::kBf16, DType::kInt4, "", "INT4 weights, BF16 activations"},
  };
  return formats;
}

const ExpertFormat* find_expert_format(const std::string& name) {
  const auto& formats = expert_formats();
  const auto found =
      std::find_if(formats.begin(), formats.end(), [&](const auto& f) { return f.name == name; });
  return found == formats.end() ? nullptr : &*found;
}

Routings DrawnRoutings::of(const ExpertGroup& group, const std::string& distribution) {
  Routings& known =
      known_[{group.tokens, group.active, group.experts, group.ranks, group.slots, distribution}];
  if (known) return known;
  std::vector<std::vector<std::int32_t>> drawn;
  if (distribution == "balanced") {
    drawn.push_back(balanced_load(group));
  } else if (distribution.starts_with(kPowerLaw)) {
    const double exponent = std::strtod(distribution.c_str() + kPowerLaw.size(), nullptr);
    const bool rebalanced = distribution.ends_with(kRebalanced);
    for (std::uint64_t seed = 0; seed < kDraws; ++seed)
      drawn.push_back(rebalanced ? rebalanced_load(group, exponent, seed)
                                 : power_law_load(group, exponent, seed));
  } else {
    return {};
  }
  return known = std::make_shared<const std::vector<std::vector<std::int32_t>>>(std::move(drawn));
}

std::string reason_against(const Csv& csv, const CsvRow& row) {
  if (csv.text(row, "backend") == "sglang" && count(csv, row, "ep") > 1)
    return "SGLang over several ranks: slots of other ranks' experts are padded and computed";
  if (csv.text(row, "kernel") == "moe_torch_flow_min_latency")
    return "grouped routing on top of the drawn one: the loads are not those of the columns";
  return "";
}

ExpertRow expert_row(const Csv& csv, const CsvRow& row, const ExpertFormat& format, DrawnRoutings& routings) {
  ExpertGroup group{.tokens = csv.whole(row, "num_tokens", 1),
                    .active = count(csv, row, "topk"),
                    .experts = count(csv, row, "num_experts"),
                    .ranks = count(csv, row, "ep")};
  ExpertRow out;
  out.wide = csv.has("rank0_num_tokens");
  if (out.wide) group.slots = count(csv, row, "num_slots");
  expect_shared(csv, row, out.wide ? "num_slots" : "num_experts", group.ranks);
  if (group.active > group.experts)
    throw input_error(fmt::format("{}: expected num_experts, {}, at most, found {}", csv.place(row, "topk"),
                                  group.experts, group.active));
  out.tokens = out.wide ? static_cast<std::int64_t>(csv.number(row, "rank0_num_tokens")) : group.tokens;
  out.distribution = csv.text(row, "distribution");
  out.routings = routings.of(group, out.distribution);
  out.microseconds = csv.number(row, "latency_us");
  out.layer = {.hidden = static_cast<std::int64_t>(csv.number(row, "hidden")),
               .width = static_cast<std::int64_t>(csv.number(row, "inter")) / count(csv, row, "tp"),
               .experts = group.experts,
               .active = group.active,
               .dtype = format.dtype,
               .stored = format.stored};
  const MeasuredRow hashed{{}, {}, 0, row.text};
  out.kept_out = out.wide || is_kept_out(hashed);
  out.check = is_check_row(hashed);
  return out;
}

}  // namespace moebius
