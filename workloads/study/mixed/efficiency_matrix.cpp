#include "workloads/study/mixed/efficiency_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/layer_math.h"

namespace moebius {
namespace {

struct OpClass {
  std::string_view name;
  OpKind kind;
  Shape shape;
};

constexpr std::int64_t kTokens = 4096;

// Widths of a dense product as tensor parallelism leaves them.
constexpr std::array<std::int64_t, 5> kWidths{512, 1024, 2048, 4096, 8192};

Shape heads(std::int64_t tokens, int sequences, std::int64_t keys) {
  return {.m = tokens,
          .groups = sequences,
          .heads = 16,
          .kv_heads = 4,
          .head_dim = 128,
          .v_dim = 128,
          .kv = keys};
}

// One of each class at the size that training and serving of large models give it.
std::vector<OpClass> op_classes() {
  std::vector<OpClass> classes;
  for (const std::int64_t width : kWidths)
    classes.push_back({"gemm", OpKind::kGemm, {.m = kTokens, .n = width, .k = kTokens}});
  classes.push_back({"gemm, weight gradient", OpKind::kGemmWgrad, {.m = 2048, .n = 4096, .k = kTokens}});
  classes.push_back({"gemm of decode", OpKind::kGemm, {.m = 16, .n = 8192, .k = 8192}});
  classes.push_back(
      {"expert gemms", OpKind::kGroupedGemm, {.m = 32 * 512, .n = 4096, .k = 4096, .groups = 32}});
  classes.push_back(
      {"expert gemms of decode", OpKind::kGroupedGemm, {.m = 32 * 8, .n = 4096, .k = 4096, .groups = 32}});
  classes.push_back({"attention", OpKind::kAttention, heads(kTokens, 1, kTokens)});
  classes.push_back({"attention, backward", OpKind::kAttentionGrad, heads(kTokens, 1, kTokens)});
  Shape paged = heads(64, 64, 8192);
  paged.n = std::int64_t{paged.kv_heads} * (paged.head_dim + paged.v_dim);  // a token's row of the cache
  classes.push_back({"attention of decode", OpKind::kPagedAttention, paged});
  classes.push_back({"norm", OpKind::kNorm, {.m = kTokens, .n = 8192}});
  classes.push_back({"activation", OpKind::kActivation, {.m = kTokens, .n = 8192, .k = 2}});
  classes.push_back({"adam", OpKind::kAdam, {.m = std::int64_t{1} << 26}});
  return classes;
}

std::string shape_text(const OpClass& of) {
  const Shape& s = of.shape;
  if (s.heads > 0)
    return fmt::format("{} x {} queries, {} keys, {} heads of {}", s.groups, s.m / s.groups, s.kv, s.heads,
                       s.head_dim);
  if (s.groups > 0) return fmt::format("{} x ({} x {} x {})", s.groups, s.m / s.groups, s.n, s.k);
  if (s.n == 0) return fmt::format("{} parameters", s.m);
  return s.k > 2 ? fmt::format("{} x {} x {}", s.m, s.n, s.k) : fmt::format("{} x {}", s.m, s.n);
}

// In other formats than BF16 products alone.
bool runs_in(OpKind kind, DType dtype) {
  const bool product = kind == OpKind::kGemm || kind == OpKind::kGroupedGemm;
  return dtype == DType::kBf16 || product;
}

EfficiencyRow row_of(const OpClass& of, DType dtype, const Accelerator& chip, const CostSource& costs) {
  const Cost cost = costs.cost({.kind = of.kind, .shape = of.shape, .dtype = dtype, .cores = chip.cores});
  const double flops = op_flops(of.kind, of.shape).value, bytes = op_bytes(of.kind, of.shape, dtype).value;
  const double peak = chip.peak_of(dtype).value, memory = chip.memory_rate.value;
  const bool computes = flops / peak > bytes / memory;
  const bool dense = of.kind == OpKind::kGemm && of.shape.m == kTokens;
  return {.op = fmt::format("{} {}", of.name, to_string(dtype)),
          .shape = shape_text(of),
          .kind = computes ? EfficiencyKind::kCompute : EfficiencyKind::kMemory,
          .rate = (computes ? flops : bytes) / cost.seconds,
          .peak = computes ? peak : memory,
          .seconds = cost.seconds,
          .source = std::string(to_string(cost.origin)),
          .error = cost.error,
          .width = dense ? static_cast<double>(of.shape.n) : 0};
}

}  // namespace

std::string_view to_string(EfficiencyKind kind) {
  constexpr std::array<std::string_view, 4> kNames{"compute", "memory", "link", "NIC"};
  return kNames[static_cast<std::size_t>(kind)];
}

double EfficiencyMatrix::efficiency(std::string_view op, double width) const {
  const EfficiencyRow *below = nullptr, *above = nullptr;
  for (const EfficiencyRow& row : rows) {
    if (row.op != op) continue;
    if (row.width <= width && (below == nullptr || row.width > below->width)) below = &row;
    if (row.width >= width && (above == nullptr || row.width < above->width)) above = &row;
  }
  if (below == nullptr) below = above;
  if (above == nullptr) above = below;
  CHECK(below != nullptr, fmt::format("{} has no row \"{}\"", chip, op));
  if (above->width <= below->width) return below->efficiency();
  const double share = std::log(width / below->width) / std::log(above->width / below->width);
  return below->efficiency() + share * (above->efficiency() - below->efficiency());
}

EfficiencyMatrix chip_matrix(const Accelerator& chip, const CostSource& costs, DType products) {
  EfficiencyMatrix matrix{chip.id, "", {}};
  std::vector<DType> formats{DType::kBf16, DType::kFp8};
  if (std::find(formats.begin(), formats.end(), products) == formats.end()) formats.push_back(products);
  for (const DType dtype : formats) {
    if (chip.peak_of(dtype).value <= 0) continue;
    for (const OpClass& of : op_classes())
      if (runs_in(of.kind, dtype)) matrix.rows.push_back(row_of(of, dtype, chip, costs));
  }
  return matrix;
}

Node node_for(const Accelerator& chip, const Catalog& catalog) {
  const std::string family = chip.id.substr(0, chip.id.find('-'));
  std::optional<Node> best;
  int most = -1;
  for (const std::string& id : catalog.node_ids()) {
    const Node node = catalog.node(id);
    const Pool pool{.name = chip.id, .accelerator = chip, .node = node, .nodes = 2};
    if (!problem_of(pool).empty() || node.accelerators < 2) continue;
    const int fits = 2 * (node.accelerators == chip.link_domain) + (node.id.rfind(family, 0) == 0);
    if (fits > most) best = node, most = fits;
  }
  if (!best) throw input_error(fmt::format("{}: no node of the catalog takes it", chip.id));
  return *best;
}

}  // namespace moebius
