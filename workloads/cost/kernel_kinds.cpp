#include "workloads/cost/kernel_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "hw/error.h"
#include "models/layer_math.h"
#include "workloads/cost/roofline.h"

namespace moebius {

namespace {

using Size = std::optional<std::int64_t> KernelRequest::*;

constexpr std::int64_t kMostSize = 1 << 30, kMostCount = 1 << 16;

constexpr KernelOption kOptions[] = {
    {"m", "rows of a GEMM's result", &KernelRequest::m, kMostSize},
    {"n", "columns", &KernelRequest::n, kMostSize},
    {"k", "reduction of a GEMM", &KernelRequest::k, kMostSize},
    {"groups", "experts of a grouped GEMM; sequences of attention", &KernelRequest::groups, kMostCount},
    {"heads", "query heads", &KernelRequest::heads, kMostCount},
    {"kv-heads", "key-value heads", &KernelRequest::kv_heads, kMostCount},
    {"head-dim", "columns of a query or key head", &KernelRequest::head_dim, kMostCount},
    {"v-dim", "columns of a value head", &KernelRequest::v_dim, kMostCount},
    {"kv", "attention: decode, one query a sequence over so many keys", &KernelRequest::kv, kMostSize},
    {"cores", "that the kernel holds; default: all of the chip", &KernelRequest::cores, kMostCount},
};

constexpr DType kMatrixTypes[] = {DType::kBf16, DType::kFp8,  DType::kFp16,
                                  DType::kFp32, DType::kInt8, DType::kFp4};
constexpr DType kStoredTypes[] = {DType::kFp8, DType::kInt8, DType::kFp4, DType::kInt4, DType::kBf16};
constexpr DType kAttentionTypes[] = {DType::kBf16, DType::kFp8, DType::kFp16, DType::kFp32};
constexpr DType kQuantisedTypes[] = {DType::kFp8, DType::kInt8, DType::kFp4};
constexpr DType kMomentTypes[] = {DType::kFp32, DType::kBf16, DType::kFp8};

struct Kind {
  std::string_view name, help;
  OpKind op;
  std::span<const DType> dtypes;  // the first is the default
  std::vector<Size> takes;        // beside --cores
  void (*fill)(const Kind&, const KernelRequest&, KernelSweep&);
};

std::string_view name_of(Size size) {
  for (const KernelOption& option : kOptions)
    if (option.value == size) return option.name;
  return "";
}

std::string names_of(const std::vector<Size>& sizes) {
  std::vector<std::string> names;
  names.reserve(sizes.size());
  for (const Size size : sizes) names.push_back(fmt::format("--{}", name_of(size)));
  return names.empty() ? "no sizes" : fmt::format("{}", fmt::join(names, ", "));
}

std::int64_t need(const Kind& kind, const KernelRequest& request, Size size) {
  if (!(request.*size))
    throw input_error(fmt::format("--kernel {}: expected --{}, found none", kind.name, name_of(size)));
  return *(request.*size);
}

std::int32_t need_count(const Kind& kind, const KernelRequest& request, Size size) {
  return static_cast<std::int32_t>(need(kind, request, size));
}

// Two of m, n and k are given, the third is swept: the rows of a layer, or the tokens of a weight gradient.
// With all three there is one point.
void fill_gemm(const Kind& kind, const KernelRequest& request, KernelSweep& sweep) {
  const Size sizes[] = {&KernelRequest::m, &KernelRequest::n, &KernelRequest::k};
  const auto missing = [&](Size size) { return !(request.*size); };
  if (std::count_if(std::begin(sizes), std::end(sizes), missing) > 1) {
    std::vector<Size> given;
    std::remove_copy_if(std::begin(sizes), std::end(sizes), std::back_inserter(given), missing);
    throw input_error(
        fmt::format("--kernel {}: expected two of --m, --n, --k, the third is swept, or all three; found {}",
                    kind.name, given.empty() ? "none" : names_of(given)));
  }
  const auto* const swept = std::find_if(std::begin(sizes), std::end(sizes), missing);
  const bool one_point = swept == std::end(sizes);
  sweep.axis = name_of(one_point ? &KernelRequest::m : *swept);
  if (one_point) sweep.first = sweep.last = *request.m;
  sweep.shape = [=](std::int64_t x) {
    return Shape{.m = request.m.value_or(x), .n = request.n.value_or(x), .k = request.k.value_or(x)};
  };
}

// The same for all experts together.
void fill_grouped_gemm(const Kind& kind, const KernelRequest& request, KernelSweep& sweep) {
  const std::int32_t groups = need_count(kind, request, &KernelRequest::groups);
  fill_gemm(kind, request, sweep);
  if (sweep.first < sweep.last) sweep.last = 1 << 16;
  sweep.grain = groups;
  sweep.shape = [groups, shape = sweep.shape](std::int64_t x) {
    Shape grouped = shape(x);
    grouped.groups = groups;
    return grouped;
  };
}

Shape heads_of(const Kind& kind, const KernelRequest& request) {
  Shape shape{.heads = need_count(kind, request, &KernelRequest::heads),
              .kv_heads = need_count(kind, request, &KernelRequest::kv_heads),
              .head_dim = need_count(kind, request, &KernelRequest::head_dim),
              .v_dim = need_count(kind, request, &KernelRequest::v_dim)};
  if (shape.heads % shape.kv_heads != 0)
    throw input_error(fmt::format("--kernel {}: expected --kv-heads to divide --heads {}, found {}",
                                  kind.name, shape.heads, shape.kv_heads));
  return shape;
}

// Whole sequences: as many queries as keys.
void fill_prefill(const Kind& kind, const KernelRequest& request, KernelSweep& sweep) {
  Shape shape = heads_of(kind, request);
  shape.groups = static_cast<std::int32_t>(request.groups.value_or(1));
  if (!request.groups) sweep.sizes = "one sequence (default), ";
  sweep.axis = "sequence";
  sweep.first = 16;
  sweep.last = 1 << 17;
  sweep.shape = [shape](std::int64_t length) mutable {
    shape.m = shape.groups * length;
    shape.kv = length;
    return shape;
  };
}

// One query a sequence, over the number of sequences.
void fill_decode(const Kind& kind, const KernelRequest& request, KernelSweep& sweep) {
  if (request.groups)
    throw input_error(fmt::format(
        "--kernel {}: expected either --groups or --kv, which sweeps the number of sequences; found both",
        kind.name));
  Shape shape = heads_of(kind, request);
  shape.kv = *request.kv;
  sweep.help = "causal attention of one query a sequence (decode)";
  sweep.axis = "sequences";
  sweep.last = 4096;
  sweep.shape = [shape](std::int64_t sequences) mutable {
    shape.m = sequences;
    shape.groups = static_cast<std::int32_t>(sequences);
    return shape;
  };
}

void fill_attention(const Kind& kind, const KernelRequest& request, KernelSweep& sweep) {
  request.kv ? fill_decode(kind, request, sweep) : fill_prefill(kind, request, sweep);
}

void fill_rows(const Kind& kind, const KernelRequest& request, KernelSweep& sweep) {
  const std::int64_t n = need(kind, request, &KernelRequest::n);
  const bool activation = kind.op == OpKind::kActivation || kind.op == OpKind::kActivationGrad;
  sweep.axis = "m";
  sweep.shape = [=](std::int64_t m) { return Shape{.m = m, .n = n, .k = activation ? 2 : 0}; };
}

void fill_adam(const Kind&, const KernelRequest&, KernelSweep& sweep) {
  sweep.axis = "m";
  sweep.first = 1 << 10;
  sweep.last = std::int64_t{1} << 34;
  sweep.factor = 4;
  sweep.shape = [](std::int64_t m) { return Shape{.m = m}; };
}

const std::vector<Kind>& kinds() {
  using R = KernelRequest;
  static const std::vector<Size> gemm{&R::m, &R::n, &R::k}, grouped{&R::m, &R::n, &R::k, &R::groups},
      sequences{&R::heads, &R::kv_heads, &R::head_dim, &R::v_dim, &R::groups},
      attention{&R::heads, &R::kv_heads, &R::head_dim, &R::v_dim, &R::groups, &R::kv}, rows{&R::n};
  static const std::vector<Kind> table{
      {"gemm", "x[m,k] W[n,k] -> y[m,n]", OpKind::kGemm, kMatrixTypes, gemm, fill_gemm},
      {"gemm-dgrad", "dy[m,k] W[k,n] -> dx[m,n]", OpKind::kGemmDgrad, kMatrixTypes, gemm, fill_gemm},
      {"gemm-wgrad", "dy[k,m] x[k,n] -> dW[m,n] +=, k tokens", OpKind::kGemmWgrad, kMatrixTypes, gemm,
       fill_gemm},
      {"grouped-gemm", "x[m,k] W[groups,n,k] -> y[m,n], rows spread evenly", OpKind::kGroupedGemm,
       kMatrixTypes, grouped, fill_grouped_gemm},
      {"grouped-gemm-dgrad", "dy[m,k] W[groups,k,n] -> dx[m,n], rows spread evenly",
       OpKind::kGroupedGemmDgrad, kMatrixTypes, grouped, fill_grouped_gemm},
      {"grouped-gemm-wgrad", "dy[k,m] x[k,n] -> dW[groups,m,n] +=, k rows spread evenly",
       OpKind::kGroupedGemmWgrad, kMatrixTypes, grouped, fill_grouped_gemm},
      {"attention", "causal attention of whole sequences", OpKind::kAttention, kAttentionTypes, attention,
       fill_attention},
      {"attention-grad", "backward of causal attention of whole sequences", OpKind::kAttentionGrad,
       kAttentionTypes, sequences, fill_prefill},
      {"norm", "RMSNorm of m rows; 8- and 4-bit: with the quantised copy", OpKind::kNorm, kMatrixTypes, rows,
       fill_rows},
      {"norm-grad", "backward of RMSNorm of m rows", OpKind::kNormGrad, kMatrixTypes, rows, fill_rows},
      {"quantise", "m rows from BF16 to 8 or 4 bits, a scale per 128 columns", OpKind::kQuantise,
       kQuantisedTypes, rows, fill_rows},
      {"transpose-quantise", "the same with a scale per 128 rows", OpKind::kTransposeQuantise,
       kQuantisedTypes, rows, fill_rows},
      {"activation", "silu(left) * right of x[m,2n]; 8- and 4-bit: with the quantised copy",
       OpKind::kActivation, kMatrixTypes, rows, fill_rows},
      {"activation-grad", "backward of silu(left) * right of x[m,2n]", OpKind::kActivationGrad, kMatrixTypes,
       rows, fill_rows},
      {"adam",
       "optimizer step of m parameters; the type is that of the moments",
       OpKind::kAdam,
       kMomentTypes,
       {},
       fill_adam},
  };
  return table;
}

const Kind& find_kind(const std::string& name) {
  const std::vector<std::string> known = kernel_kind_names();
  for (const Kind& kind : kinds())
    if (kind.name == name) return kind;
  throw input_error(fmt::format("--kernel: expected one of \"{}\", found \"{}\"{}",
                                fmt::join(known, "\", \""), name, suggestion(name, known)));
}

void check_options(const Kind& kind, const KernelRequest& request) {
  for (const KernelOption& option : kOptions) {
    const auto& value = request.*option.value;
    if (!value) continue;
    const bool takes = option.value == &KernelRequest::cores ||
                       std::find(kind.takes.begin(), kind.takes.end(), option.value) != kind.takes.end();
    if (!takes)
      throw input_error(fmt::format("--kernel {} does not take --{}; it takes {}", kind.name, option.name,
                                    names_of(kind.takes)));
    if (*value < 1 || *value > option.most)
      throw input_error(fmt::format("--{}: expected 1 to {}, found {}", option.name, option.most, *value));
  }
}

DType one_of(const Kind& kind, std::span<const DType> dtypes, std::string_view option,
             const std::string& name) {
  std::vector<std::string> known;
  for (const DType dtype : dtypes) {
    if (to_string(dtype) == name) return dtype;
    known.emplace_back(to_string(dtype));
  }
  throw input_error(fmt::format("--kernel {}: expected --{} {}, found \"{}\"", kind.name, option,
                                fmt::join(known, ", "), name));
}

DType dtype_of(const Kind& kind, const KernelRequest& request) {
  return request.dtype.empty() ? kind.dtypes.front() : one_of(kind, kind.dtypes, "dtype", request.dtype);
}

std::optional<DType> stored_of(const Kind& kind, const KernelRequest& request) {
  if (request.stored.empty()) return {};
  if (!has_stored_operand(kind.op))
    throw input_error(fmt::format(
        "--kernel {} does not take --stored: it has no weights and no cache of another type", kind.name));
  return one_of(kind, kStoredTypes, "stored", request.stored);
}

int cores_of(const Kind& kind, const KernelRequest& request, const Accelerator& chip) {
  const int most = cores_of_chip(chip, kind.op);
  if (request.cores && *request.cores > most)
    throw input_error(
        fmt::format("--cores: expected 1 to {} on {}, found {}", most, chip.id, *request.cores));
  return static_cast<int>(request.cores.value_or(most));
}

// A user's catalog may describe a chip by its memory alone.
void require_peak(const Kind& kind, const Accelerator& chip) {
  const auto known = [](FlopRate peak) { return peak.value > 0; };
  if (uses_tensor_cores(kind.op) && std::none_of(chip.peak.begin(), chip.peak.end(), known))
    throw input_error(
        fmt::format("--kernel {}: expected a peak of some type of {}, found none", kind.name, chip.id));
}

// "n 7168, k 2048, bf16 (default), all 132 cores (default)".
std::string sizes_text(const Kind& kind, const KernelRequest& request, const KernelSweep& sweep) {
  std::string text;
  for (const Size size : kind.takes)
    if (request.*size) text += fmt::format("{} {}, ", name_of(size), *(request.*size));
  text += sweep.sizes;
  text += fmt::format("{}{}, ", to_string(sweep.dtype), request.dtype.empty() ? " (default)" : "");
  if (sweep.stored)
    text += fmt::format("{} {}, ", sweep.op == OpKind::kAttention ? "cache" : "weights",
                        to_string(*sweep.stored));
  return text + (request.cores ? fmt::format("{} cores", sweep.cores)
                               : fmt::format("all {} cores (default)", sweep.cores));
}

}  // namespace

std::span<const KernelOption> kernel_options() {
  return kOptions;
}

std::vector<std::string> kernel_kind_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.emplace_back(kind.name);
  return names;
}

std::vector<std::string> kernel_dtype_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds())
    for (const DType dtype : kind.dtypes)
      if (std::ranges::find(names, to_string(dtype)) == names.end()) names.emplace_back(to_string(dtype));
  return names;
}

std::vector<std::string> kernel_stored_names() {
  std::vector<std::string> names;
  for (const DType dtype : kStoredTypes) names.emplace_back(to_string(dtype));
  return names;
}

KernelSweep kernel_sweep(const KernelRequest& request, const Accelerator& chip) {
  const Kind& kind = find_kind(request.kind);
  check_options(kind, request);
  require_peak(kind, chip);
  KernelSweep sweep;
  sweep.op = kind.op;
  sweep.dtype = dtype_of(kind, request);
  sweep.stored = stored_of(kind, request);
  sweep.cores = cores_of(kind, request, chip);
  sweep.name = kind.name;
  sweep.help = kind.help;
  kind.fill(kind, request, sweep);
  sweep.sizes = sizes_text(kind, request, sweep);
  return sweep;
}

void require_no_kernel(const KernelRequest& request) {
  for (const KernelOption& option : kOptions)
    if (request.*option.value)
      throw input_error(fmt::format("--{}: expected --kernel KIND beside it, found none", option.name));
  if (!request.dtype.empty()) throw input_error("--dtype: expected --kernel KIND beside it, found none");
  if (!request.stored.empty()) throw input_error("--stored: expected --kernel KIND beside it, found none");
}

}  // namespace moebius
