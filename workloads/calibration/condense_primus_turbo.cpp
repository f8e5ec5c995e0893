// Tables of the kernels that Primus-Turbo measured on an MI300X: the rates are printed, so they stand in
// code.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "workloads/calibration/harvest.h"
#include "workloads/calibration/primus_turbo.h"
#include "workloads/cost/analytic.h"

namespace moebius {
namespace {

using Key = ProfileKey;

constexpr const char* kStack = "primus-turbo-2026-04";
constexpr const char* kTensorStack = "primus-turbo-2026-04+fp8-rowwise";
constexpr const char* kBack =
    "the time of both products of a backward pass, less that of the forward product of these sizes";
constexpr const char* kTensorNote =
    "scales per tensor, {}, BF16 out; includes the two passes that quantise the activations, those of the "
    "weights are taken off as the model says";
// Less is left for the gradient of a weight than kernels may differ: the forward product of 32768 x 10240 x
// 8192 is 40% slower than the others and than itself a month before.
constexpr double kLeastLeft = 0.75;

double us_at(double operations, double teraflops) {
  return operations / (teraflops * 1e6);
}

std::string sizes_of(const ProductRates& row) {
  return fmt::format("{} {} {}", row.m, row.n, row.k);
}

// PrimusTables of one file of rates, each with what all have in common.
class PrimusTables {
 public:
  explicit PrimusTables(Harvest& harvest) : harvest_(harvest), model_(harvest.chip) {}

  TableDraft draft(const char* name, std::vector<std::string> kinds, DType dtype, std::vector<Key> site,
                   std::vector<Key> axes, std::string note, const char* stack = kStack) const {
    TableDraft draft{table_of(name, std::move(kinds), dtype, std::move(site), std::move(axes)), {}};
    draft.table.stack = stack;
    draft.table.source = "PRIMUS-TURBO";
    draft.table.cores = harvest_.chip.cores;
    draft.table.sustained = true;  // each for seconds, at the board's limit
    draft.table.note = std::move(note);
    return draft;
  }

  // A pass over a matrix from BF16 to FP8.
  double quantise_us(std::int64_t rows, std::int64_t columns) const {
    const CostQuery pass{.kind = OpKind::kQuantise,
                         .shape = {.m = rows, .n = columns},
                         .dtype = DType::kFp8,
                         .cores = harvest_.chip.cores};
    return model_.estimate(pass, Clocks::kSustained).seconds * 1e6;
  }

  void add(TableDraft draft) { harvest_.add(std::move(draft)); }

 private:
  Harvest& harvest_;
  AnalyticModel model_;
};

std::vector<double> numbers(std::initializer_list<std::int64_t> sizes) {
  return {sizes.begin(), sizes.end()};
}

void add_dense_bf16(PrimusTables& drafts) {
  TableDraft forward = drafts.draft("dense GEMM", {"gemm", "gemm_dgrad"}, DType::kBf16, {Key::kN, Key::kK},
                                    {Key::kM}, "hipBLASLt, BF16 out");
  TableDraft weights =
      drafts.draft("weight gradients", {"gemm_wgrad"}, DType::kBf16, {Key::kM, Key::kN}, {Key::kRows}, kBack);
  for (const ProductRates& row : primus_turbo_products()) {
    const double operations = 2.0 * static_cast<double>(row.m) * static_cast<double>(row.n * row.k);
    const double us = us_at(operations, row.bf16.forward);
    const double left = us_at(2 * operations, row.bf16.backward) - us;
    const std::vector<double> site = numbers({row.n, row.k}), at = numbers({row.m});
    forward.rows.push_back({site, at, us, "gemm bf16 " + sizes_of(row)});
    if (left >= kLeastLeft * us) weights.rows.push_back({site, at, left, "gemm_wgrad bf16 " + sizes_of(row)});
  }
  drafts.add(std::move(forward));
  drafts.add(std::move(weights));
}

// How often an FP8 operand is passed over before it is multiplied.
struct Fp8Kernels {
  PassRates ProductRates::*rates;
  const char* scales;
  int passes;
  const char* stack;
  std::string forward_note, back_note;
  bool quantises_back;  // operands of the weight's gradient anew, by columns
};

void add_dense_fp8(PrimusTables& drafts, const Fp8Kernels& of) {
  TableDraft forward = drafts.draft("dense GEMM", {"gemm", "gemm_dgrad"}, DType::kFp8, {Key::kN, Key::kK},
                                    {Key::kM}, of.forward_note, of.stack);
  TableDraft weights = drafts.draft("weight gradients", {"gemm_wgrad"}, DType::kFp8, {Key::kM, Key::kN},
                                    {Key::kRows}, of.back_note, of.stack);
  forward.table.includes.assign(static_cast<std::size_t>(of.passes), "quantise");
  if (of.quantises_back) weights.table.includes = {"quantise"};
  for (const ProductRates& row : primus_turbo_products()) {
    const PassRates& rates = row.*of.rates;
    const double operations = 2.0 * static_cast<double>(row.m) * static_cast<double>(row.n * row.k);
    const auto passes = [&](std::int64_t rows, std::int64_t columns) {
      return of.passes * drafts.quantise_us(rows, columns);
    };
    const double us = us_at(operations, rates.forward) - passes(row.n, row.k);
    const double product = us - passes(row.m, row.k);
    const double left = us_at(2 * operations, rates.backward) - product - passes(row.m, row.n);
    const std::vector<double> site = numbers({row.n, row.k}), at = numbers({row.m});
    forward.rows.push_back({site, at, us, fmt::format("gemm fp8 {} {}", of.scales, sizes_of(row))});
    weights.rows.push_back({site, at, left, fmt::format("gemm_wgrad fp8 {} {}", of.scales, sizes_of(row))});
  }
  drafts.add(std::move(forward));
  drafts.add(std::move(weights));
}

void add_attention(PrimusTables& drafts) {
  const std::vector<Key> site = {Key::kHeads, Key::kKvHeads, Key::kHeadDim, Key::kVDim};
  std::array<TableDraft, 2> passes = {drafts.draft("attention, prefill", {"attention"}, DType::kBf16, site,
                                                   {Key::kGroups, Key::kQueries}, "causal"),
                                      drafts.draft("attention backward", {"attention_grad"}, DType::kBf16,
                                                   site, {Key::kGroups, Key::kQueries}, "causal")};
  for (TableDraft& draft : passes) draft.table.where = {{Key::kWindow, 0, 0}, {Key::kQueries, 64, 1e9}};
  for (const AttentionRates& row : primus_turbo_attention()) {
    const double pairs = static_cast<double>(row.queries) * static_cast<double>(row.queries) / 2;
    const double operations = 2 * pairs * row.sequences * row.heads * (row.head_dim + row.v_dim);
    const std::string sizes = fmt::format("{} {} {} {} {} {}", row.sequences, row.queries, row.heads,
                                          row.kv_heads, row.head_dim, row.v_dim);
    const std::vector<double> heads = numbers({row.heads, row.kv_heads, row.head_dim, row.v_dim}),
                              at = numbers({row.sequences, row.queries});
    passes[0].rows.push_back({heads, at, us_at(operations, row.bf16.forward), "attention bf16 " + sizes});
    passes[1].rows.push_back(
        {heads, at, us_at(2.5 * operations, row.bf16.backward), "attention_grad bf16 " + sizes});
  }
  for (TableDraft& draft : passes) drafts.add(std::move(draft));
}

void add_experts(PrimusTables& drafts) {
  const std::vector<std::string> kinds = {"grouped_gemm", "grouped_gemm_dgrad"};
  const std::vector<Key> site = {Key::kGroups, Key::kN, Key::kK};
  TableDraft bf16 = drafts.draft("grouped GEMM", kinds, DType::kBf16, site, {Key::kRows},
                                 "Composable Kernel, BF16 out; as many rows for every expert");
  TableDraft weights = drafts.draft("weight gradients of experts", {"grouped_gemm_wgrad"}, DType::kBf16,
                                    {Key::kGroups, Key::kM, Key::kN}, {Key::kRows}, kBack);
  TableDraft fp8 = drafts.draft("grouped GEMM", kinds, DType::kFp8, site, {Key::kRows},
                                fmt::format(fmt::runtime(kTensorNote), "Composable Kernel"), kTensorStack);
  fp8.table.includes = {"quantise", "quantise"};
  for (const ExpertRates& row : primus_turbo_experts()) {
    const double operations =
        2.0 * row.groups * static_cast<double>(row.rows) * static_cast<double>(row.n * row.k);
    const std::string sizes = fmt::format("{} {} {} {}", row.groups, row.rows, row.n, row.k);
    const std::vector<double> of = numbers({row.groups, row.n, row.k}), at = numbers({row.rows});
    const double us = us_at(operations, row.bf16.forward);
    bf16.rows.push_back({of, at, us, "grouped_gemm bf16 " + sizes});
    weights.rows.push_back(
        {of, at, us_at(2 * operations, row.bf16.backward) - us, "grouped_gemm_wgrad bf16 " + sizes});
    if (row.fp8 > 0)
      fp8.rows.push_back({of, at,
                          us_at(operations, row.fp8) - 2 * drafts.quantise_us(row.groups * row.n, row.k),
                          "grouped_gemm fp8 tensor " + sizes});
  }
  for (TableDraft* draft : {&bf16, &weights, &fp8}) drafts.add(std::move(*draft));
}

}  // namespace

void read_primus_turbo(Harvest& harvest) {
  if (!harvest.is_ours("mi300x")) return;
  harvest.add_source(
      {"PRIMUS-TURBO",
       "AMD-AGI/Primus-Turbo, benchmark/results_optimized, commits 221d75f and (FP8 in blocks) "
       "764d7a9: torch.utils.benchmark on one MI300X",
       "MIT", "2026-04"});
  PrimusTables drafts(harvest);
  add_dense_bf16(drafts);
  add_dense_fp8(
      drafts,
      {&ProductRates::fp8_block, "block", 1, kStack,
       "1x128 and 128x128 block scales, Triton, BF16 out; includes the quantisation of the "
       "activations, that of the weights is taken off as the model says",
       std::string("scales of 128 rows; includes the quantisation of both operands; ") + kBack, true});
  add_dense_fp8(drafts, {&ProductRates::fp8_tensor, "tensor", 2, kTensorStack,
                         fmt::format(fmt::runtime(kTensorNote), "hipBLASLt"),
                         std::string("scales per tensor; ") + kBack, false});
  add_attention(drafts);
  add_experts(drafts);
}

}  // namespace moebius
