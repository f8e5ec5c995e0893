#include "workloads/calibration/model_rows.h"

#include <algorithm>
#include <array>

namespace moebius {

const std::vector<ModelRowKind>& model_row_kinds() {
  static const std::vector<ModelRowKind> kinds = {
      {"dense GEMM", 0.15, gemm_model_rows},
      {"attention, prefill", 0.20, prefill_model_rows},
      {"attention, decode", 0.20, decode_model_rows},
      {"latent attention, prefill", 0.20, latent_prefill_model_rows},
      {"latent attention, decode", 0.20, latent_decode_model_rows},
  };
  return kinds;
}

bool in_sample(std::string_view text, std::uint64_t one_in) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return (hash >> 32) % one_in == 0;
}

std::string database_system(const Accelerator& chip) {
  constexpr std::array kSystems = {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm",           "b300_sxm",
                                   "gb300",    "l40s",     "b60",      "rtx_pro_6000_server"};
  for (const char* system : kSystems) {
    std::string name = system;
    std::replace(name.begin(), name.end(), '_', '-');
    const bool alias = std::find(chip.aliases.begin(), chip.aliases.end(), name) != chip.aliases.end();
    if (alias || chip.id == name) return system;
  }
  return {};
}

}  // namespace moebius
