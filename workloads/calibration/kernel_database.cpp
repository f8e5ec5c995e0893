#include "workloads/calibration/kernel_database.h"

#include <algorithm>
#include <array>

#include "workloads/calibration/fit_table.h"

namespace moebius {
namespace {

constexpr std::array kSystems = {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm",           "b300_sxm",
                                 "gb300",    "l40s",     "b60",      "rtx_pro_6000_server"};
constexpr std::array kBackends = {"trtllm", "sglang", "vllm"};

constexpr const char* kWeightOnly = "integer weights under BF16 activations: no op has two types";

}  // namespace

std::optional<std::string> system_of(const Harvest& harvest) {
  for (const char* system : kSystems) {
    std::string name = system;
    std::replace(name.begin(), name.end(), '_', '-');
    if (harvest.is_ours(name)) return system;
  }
  return {};
}

const std::vector<KernelFormat>& kernel_formats() {
  static const std::vector<KernelFormat> formats = {
      {"bfloat16", DType::kBf16, "", "weights not in the cache, activations hot"},
      {"fp8_block", DType::kFp8, "",
       "1x128 and 128x128 block scales, BF16 out; includes the quantisation of the activations"},
      {"fp8", DType::kFp8, "+fp8-rowwise",
       "scales per tensor or per token; includes the quantisation of the activations"},
      {"nvfp4", DType::kFp4, "", "scales per 16 elements; includes the quantisation of the activations"},
      {"sq", DType::kInt8, "", "SmoothQuant"},
      {"int8_wo", {}, "", kWeightOnly},
      {"int4_wo", {}, "", kWeightOnly},
  };
  return formats;
}

std::size_t format_of(const Csv& csv, const CsvRow& row, const char* column) {
  const std::string& name = csv.text(row, column);
  const auto& formats = kernel_formats();
  const auto found =
      std::find_if(formats.begin(), formats.end(), [&](const auto& f) { return f.name == name; });
  return static_cast<std::size_t>(found - formats.begin());
}

std::string stack_of(const Csv& csv, const CsvRow& row) {
  return csv.text(row, "backend") + "-" + csv.text(row, "version");
}

std::size_t rank_of(const std::string& backend) {
  return static_cast<std::size_t>(std::find(kBackends.begin(), kBackends.end(), backend) - kBackends.begin());
}

void add_database_source(Harvest& harvest) {
  harvest.add_source({"AICONFIGURATOR",
                      "ai-dynamo/aiconfigurator, systems/data, commit 095f58a; CUDA graph replays",
                      "Apache-2.0", "2026-08-21"});
}

void Drafts::add_to(Harvest& harvest) {
  for (auto& [key, draft] : tables) {
    for (const auto& [reason, rows] : left_out[key.stack]) draft.table.rejected.push_back({rows, reason});
    left_out[key.stack].clear();
    draft.table.source = "AICONFIGURATOR";
    draft.table.cores = harvest.chip.cores;
    ProfileTable fitted = fit_table(std::move(draft), harvest.chip);
    if (fitted.sites.empty()) {
      for (const RejectedRows& rejected : fitted.rejected)
        left_out[key.stack][rejected.reason] += rejected.rows;
      continue;
    }
    harvest.profile.tables.push_back(std::move(fitted));
  }
  if (!tables.empty()) add_database_source(harvest);
}

}  // namespace moebius
