// Quantisation of BF16 activations to FP8 in the kernel database. `scale_matrix` is the kernel that divides
// by a known scale and writes, `compute_scale` what finding the scale per tensor first takes on top: another
// pass and the waits between. An op of ours finds the scales of 128 columns in registers, in the one pass:
// that is scale_matrix.
//
// A part cannot take longer than the whole: rows of a stack are held against its own GEMMs, whose times
// contain the quantisation of the same activations. TensorRT-LLM's pass is under all of them. a fifth to
// two thirds of SGLang's rows, by chip, are over its own (H200, 4096 x 7168: 223 us, a whole GEMM of 512
// columns 62 us): what it times there is not the kernel that its GEMMs run.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "workloads/calibration/kernel_database.h"

namespace moebius {
namespace {

using Key = ProfileKey;

constexpr double kMostOver = 0.01;                         // of the shapes that both measured: scatter
constexpr const char* kPerTensorVariant = "+fp8-rowwise";  // the stack of the GEMMs with such scales

struct Activations {
  double m = 0, k = 0;
  auto operator<=>(const Activations&) const = default;
};

struct Passes {  // microseconds
  double scale = 0, compute = 0;
  std::string text;
};

using Stack = std::map<Activations, Passes>;
using Wholes = std::map<Activations, double>;

std::map<std::string, Stack> read_passes(const Csv& csv) {
  std::map<std::string, Stack> stacks;
  for (const CsvRow& row : csv.rows()) {
    Passes& passes = stacks[stack_of(csv, row)][{csv.number(row, "m"), csv.number(row, "k")}];
    if (csv.text(row, "op") == "scale_matrix") {
      passes.scale = csv.number(row, "latency_us");
      passes.text = row.text;
    } else {
      passes.compute = csv.number(row, "latency_us");
    }
  }
  return stacks;
}

// Of each stack: the shortest FP8 GEMM over the same activations.
std::map<std::string, Wholes> read_wholes(const Csv& csv) {
  std::map<std::string, Wholes> wholes;
  for (const CsvRow& row : csv.rows()) {
    if (csv.text(row, "dtype") != "fp8") continue;
    const double us = csv.number(row, "latency_us");
    const Activations activations{csv.number(row, "m"), csv.number(row, "k")};
    double& least = wholes[stack_of(csv, row)].try_emplace(activations, us).first->second;
    least = std::min(least, us);
  }
  return wholes;
}

// Says so when a pass takes longer than the whole, but for scatter.
std::optional<std::string> contradiction(const std::string& name, const Stack& stack, const Wholes& wholes) {
  int both = 0, over = 0;
  for (const auto& [activations, passes] : stack) {
    const auto whole = wholes.find(activations);
    if (whole == wholes.end()) continue;
    ++both;
    over += passes.scale > whole->second ? 1 : 0;
  }
  if (over <= kMostOver * both) return {};
  return fmt::format(
      "quantisation as {} times it alone: at {} of {} shapes longer than a whole GEMM of its that contains "
      "it",
      name, over, both);
}

// `passes`: 1 for an op's, 2 for scales per tensor.
TableDraft draft_of(const std::string& name, const Stack& stack, int passes) {
  TableDraft draft;
  draft.table = table_of(passes == 1 ? "quantise to FP8" : "quantise to FP8, per tensor", {"quantise"},
                         DType::kFp8, {Key::kN}, {Key::kM});
  draft.table.stack = passes == 1 ? name : name + kPerTensorVariant;
  draft.table.note = passes == 1 ? "one pass, the scale known: an op's scales of 128 columns take no other"
                                 : "two passes: the scale of the whole tensor, then the division";
  for (const auto& [activations, us] : stack)
    draft.rows.push_back(
        {{activations.k}, {activations.m}, us.scale + (passes == 1 ? 0 : us.compute), us.text});
  return draft;
}

}  // namespace

void read_quantise_kernels(Harvest& harvest, const std::string& system) {
  if (!harvest.has("kernels/quantize.csv.gz")) return;
  const auto stacks = read_passes(harvest.open("kernels/quantize.csv.gz", system));
  const bool can_compare = !stacks.empty() && harvest.has("kernels/gemm.csv.gz");
  auto wholes = can_compare ? read_wholes(harvest.open("kernels/gemm.csv.gz", system))
                            : std::map<std::string, Wholes>{};
  Drafts drafts;
  std::map<std::string, int> refused;
  for (const auto& [name, stack] : stacks) {
    if (const auto reason = contradiction(name, stack, wholes[name])) {
      refused[*reason] = static_cast<int>(stack.size());
      continue;
    }
    const bool per_tensor = name.starts_with("trtllm");
    const std::size_t backend = rank_of(name.substr(0, name.find('-')));
    drafts.tables[{backend, name, 1}] = draft_of(name, stack, 1);
    if (per_tensor) drafts.tables[{backend, name, 2}] = draft_of(name, stack, 2);
  }
  if (!drafts.tables.empty()) drafts.left_out[drafts.tables.begin()->first.stack] = std::move(refused);
  drafts.add_to(harvest);
}

}  // namespace moebius
