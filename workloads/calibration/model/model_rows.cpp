#include "workloads/calibration/model/model_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hw/error.h"
#include "workloads/cost/roofline.h"

namespace moebius {

const std::vector<ModelRowKind>& model_row_kinds() {
  static const std::vector<ModelRowKind> kinds = {
      {"dense GEMM", 0.15, gemm_model_rows},
      {"attention, prefill", 0.20, prefill_model_rows},
      {"attention, decode", 0.20, decode_model_rows},
      {"latent attention, prefill", 0.20, latent_prefill_model_rows},
      {"latent attention, decode", 0.20, latent_decode_model_rows},
      {"experts", 0.25, expert_model_rows},
  };
  return kinds;
}

namespace {

bool is_possible(const ModelRow& row, const Accelerator& chip) {
  double bound = 0;
  for (const CostQuery& kernel : row.kernels) bound += roofline(chip, kernel).seconds();
  return row.microseconds >= bound * 1e6;
}

}  // namespace

std::vector<MeasuredChip> read_measured_chips(const std::string& directory, const Catalog& catalog) {
  std::vector<MeasuredChip> chips;
  for (const std::string& id : catalog.accelerator_ids()) {
    MeasuredChip measured{catalog.accelerator(id), {}};
    bool any = false;
    for (const ModelRowKind& kind : model_row_kinds()) {
      std::vector<ModelRow>& rows = measured.kinds.emplace_back(kind.read(directory, measured.chip));
      std::erase_if(rows, [&](const ModelRow& row) { return !is_possible(row, measured.chip); });
      any = any || !rows.empty();
    }
    if (any) chips.push_back(std::move(measured));
  }
  if (chips.empty())
    throw input_error(
        fmt::format("{}: expected tables of measured kernels, found no row of any chip of the "
                    "catalog",
                    directory));
  return chips;
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
