// Measured kernels as questions to the analytic model: what its error is told from and its constants are
// fitted to. Each kind of kernel has one reader; model_row_kinds() lists them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hw/accelerator.h"
#include "hw/catalog.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// One measured time and the kernels that it covers, one after the other: mostly one; a quantisation of the
// activations before a GEMM, or the permutes and two GEMMs of an expert layer, are kernels of their own. What
// the model says of the row is the sum over them.
struct ModelRow {
  std::string format;  // as the table names it: "fp8_block"
  std::string stack;   // "trtllm-1.3.0rc20"
  std::vector<CostQuery> kernels;
  std::shared_ptr<const std::vector<std::int32_t>> rows;  // keeps what CostQuery::rows looks at; may be null
  double microseconds = 0;
};

// A kind of kernel: its name in the table of errors, the median error it shall stay under, and its reader,
// which gives the rows of one chip from the tables in `directory` (none when its file is absent or the chip
// has no rows), leaving out those whose file says that they are not what they seem. Tables of more than some
// thousand rows a chip, format and stack are sampled by in_sample().
struct ModelRowKind {
  std::string_view name;  // "dense GEMM"
  double goal = 0;        // 0.15
  std::vector<ModelRow> (*read)(const std::string& directory, const Accelerator& chip) = nullptr;
};
const std::vector<ModelRowKind>& model_row_kinds();

// A chip of the catalog and its rows, one list for every one of model_row_kinds(): without those that beat
// the bound of the chip, whose operands stood in its cache.
struct MeasuredChip {
  Accelerator chip;
  std::vector<std::vector<ModelRow>> kinds;
};

// All chips that the tables in `directory` have rows of, in the catalog's order. input_error when there is
// none.
std::vector<MeasuredChip> read_measured_chips(const std::string& directory, const Catalog& catalog);

// One row in `one_in`, by a hash of its text: the same ones on every machine.
bool in_sample(std::string_view text, std::uint64_t one_in);

// The system of AIConfigurator's database that is this chip: "h100_sxm"; empty when there is none.
std::string database_system(const Accelerator& chip);

// The readers, each in the file of its kind.
std::vector<ModelRow> gemm_model_rows(const std::string& directory, const Accelerator& chip);
std::vector<ModelRow> prefill_model_rows(const std::string& directory, const Accelerator& chip);
std::vector<ModelRow> decode_model_rows(const std::string& directory, const Accelerator& chip);
std::vector<ModelRow> latent_prefill_model_rows(const std::string& directory, const Accelerator& chip);
std::vector<ModelRow> latent_decode_model_rows(const std::string& directory, const Accelerator& chip);
std::vector<ModelRow> expert_model_rows(const std::string& directory, const Accelerator& chip);

}  // namespace moebius
