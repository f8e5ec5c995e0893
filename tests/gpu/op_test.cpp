// Each compute op on the device against the host, on random operands, within the tolerance of its kind. New
// memory holds NaN before, so that what a kernel leaves out shows.
#include <cmath>
#include <set>

#include <catch2/catch.hpp>

#include "real/cuda/tolerances.h"
#include "tests/gpu/attention_cases.h"
#include "tests/gpu/batch_cases.h"
#include "tests/gpu/op_case.h"
#include "tests/gpu/product_cases.h"

namespace moebius {
namespace {

using Operands = std::vector<OperandCase>;
constexpr DType kBf16 = DType::kBf16, kFp32 = DType::kFp32, kFp8 = DType::kFp8;

OperandCase empty(std::int64_t rows, std::int64_t columns, DType dtype = kBf16) {
  return {rows, columns, dtype, {}};
}

OperandCase whole_numbers(std::uint64_t seed, std::int64_t rows, std::int64_t below) {
  OperandCase ids{rows, 1, DType::kInt32, {}};
  for (std::int64_t i = 0; i < rows; ++i)
    ids.values.push_back(
        std::floor(static_cast<float>(random_unit(random_bits(seed, i)) * static_cast<double>(below))));
  return ids;
}

// 37 tokens, of which some rows of the last expert are few; one rank holds all experts.
RoutePtr route_of_one(int tokens) {
  return std::make_shared<const Route>(RouteSpec{.seed = 9,
                                                 .popularity = {.kind = PopularityKind::kZipf, .exponent = 1},
                                                 .ranks = 1,
                                                 .ranks_per_node = 1,
                                                 .experts = 6,
                                                 .active = 2,
                                                 .tokens = tokens});
}

std::vector<OpCase> rows_and_elements() {
  constexpr std::int64_t m = 37, n = 150;
  std::vector<OpCase> cases;
  cases.push_back({"norm",
                   {.kind = OpKind::kNorm, .shape = {.m = m, .n = n}},
                   {random_operand(11, m, n), random_operand(12, 1, n)},
                   {empty(m, n)}});
  cases.push_back({"norm with a quantised copy",
                   {.kind = OpKind::kNorm, .shape = {.m = m, .n = n}},
                   {random_operand(11, m, n), random_operand(12, 1, n)},
                   {empty(m, n), empty(m, n, kFp8)}});
  cases.push_back({"norm_grad",
                   {.kind = OpKind::kNormGrad, .shape = {.m = m, .n = n}},
                   {random_operand(13, m, n), random_operand(14, m, n), random_operand(15, 1, n)},
                   {empty(m, n), random_operand(16, 1, n, kFp32)}});
  const Shape shared{.m = m, .n = n, .k = kOfSharedRows, .kv_heads = 1};
  OperandCase means = random_operand(230, m, 2, kFp32);
  for (float& mean : means.values) mean = std::abs(mean);
  cases.push_back({"norm of rows that ranks share",
                   {.kind = OpKind::kNorm, .shape = shared},
                   {random_operand(11, m, n), random_operand(12, 1, n), means},
                   {empty(m, n)}});
  cases.push_back({"norm_grad of rows that ranks share",
                   {.kind = OpKind::kNormGrad, .shape = shared},
                   {random_operand(13, m, n), random_operand(14, m, n), random_operand(15, 1, n), means,
                    random_operand(231, m, 2, kFp32)},
                   {empty(m, n), random_operand(16, 1, n, kFp32)}});
  cases.push_back({"row_means of squares",
                   {.kind = OpKind::kRowMeans, .scale = 0.25f, .shape = {.m = m, .n = n + 40}},
                   {random_operand(232, m, n), random_operand(233, m, 40)},
                   {empty(m, 2, kFp32)}});
  cases.push_back({"row_means of projections",
                   {.kind = OpKind::kRowMeans, .scale = 0.5f, .shape = {.m = m, .n = n + 40, .k = 1}},
                   {random_operand(234, m, n), random_operand(235, m, n), random_operand(236, 1, n),
                    random_operand(237, m, 40), random_operand(238, m, 40), random_operand(239, 1, 40)},
                   {empty(m, 2, kFp32)}});
  for (const OpKind kind : {OpKind::kRotary, OpKind::kRotaryGrad}) {
    cases.push_back({std::string(to_string(kind)),
                     {.kind = kind, .shape = {.m = 24, .n = 60, .groups = 2, .heads = 3, .head_dim = 8}},
                     {random_operand(17, 24, 60)},
                     {empty(24, 60)}});
  }
  for (const std::int64_t form : {1, 2}) {
    const std::string name = form == 2 ? " gated" : " plain";
    cases.push_back({"activation" + name,
                     {.kind = OpKind::kActivation, .shape = {.m = m, .n = n, .k = form}},
                     {random_operand(18, m, form * n), random_operand(19, m, 1, kFp32)},
                     {empty(m, n)}});
    cases.push_back({"activation with a quantised copy" + name,
                     {.kind = OpKind::kActivation, .shape = {.m = m, .n = n, .k = form}},
                     {random_operand(18, m, form * n), random_operand(19, m, 1, kFp32)},
                     {empty(m, n), empty(m, n, kFp8)}});
    cases.push_back(
        {"activation_grad" + name,
         {.kind = OpKind::kActivationGrad, .shape = {.m = m, .n = n, .k = form}},
         {random_operand(20, m, n), random_operand(21, m, form * n), random_operand(22, m, 1, kFp32)},
         {empty(m, form * n), empty(m, 1, kFp32)}});
  }
  const Shape gate{.m = m, .n = n, .k = kGateOfRows};
  cases.push_back({"activation by one gate a row",
                   {.kind = OpKind::kActivation, .shape = gate},
                   {random_operand(220, m, n), random_operand(221, m, 1)},
                   {empty(m, n)}});
  cases.push_back({"activation_grad by one gate a row",
                   {.kind = OpKind::kActivationGrad, .shape = gate},
                   {random_operand(222, m, n), random_operand(223, m, n), random_operand(224, m, 1)},
                   {empty(m, n), empty(m, 1)}});
  cases.push_back({"add",
                   {.kind = OpKind::kAdd, .shape = {.m = m, .n = n}},
                   {random_operand(23, m, n), random_operand(24, m, n)},
                   {empty(m, n)}});
  cases.push_back({"split",
                   {.kind = OpKind::kSplit, .shape = {.m = m, .n = n}},
                   {random_operand(25, m, n)},
                   {empty(m, 100), empty(m, 7), empty(m, 43)}});
  cases.push_back({"concat",
                   {.kind = OpKind::kConcat, .shape = {.m = m, .n = n}},
                   {random_operand(26, m, 100), random_operand(27, m, 50)},
                   {empty(m, n)}});
  cases.push_back({"largest",
                   {.kind = OpKind::kLargest, .shape = {.m = 37, .n = 300}},
                   {random_operand(60, 37, 300)},
                   {empty(1, 1, kFp32)}});
  for (const OpKind kind : {OpKind::kQuantise, OpKind::kTransposeQuantise}) {
    cases.push_back({std::string(to_string(kind)),
                     {.kind = kind, .shape = {.m = 200, .n = n}},
                     {random_operand(28, 200, n)},
                     {empty(200, n, kFp8)}});
  }
  cases.push_back(
      {"mla_keys",
       {.kind = OpKind::kMlaKeys, .shape = {.m = m, .k = 4, .heads = 3, .head_dim = 12, .v_dim = 6}},
       {random_operand(29, m, 3 * 14), random_operand(30, m, 4)},
       {empty(m, 36), empty(m, 18)}});
  cases.push_back(
      {"mla_keys_grad",
       {.kind = OpKind::kMlaKeysGrad, .shape = {.m = m, .k = 4, .heads = 3, .head_dim = 12, .v_dim = 6}},
       {random_operand(31, m, 36), random_operand(32, m, 18)},
       {empty(m, 42), empty(m, 4)}});
  return cases;
}

std::vector<OpCase> tokens() {
  constexpr std::int64_t m = 37, n = 300, k = 20;
  std::vector<OpCase> cases;
  cases.push_back({"input",
                   {.kind = OpKind::kInput, .shape = {.m = 24, .n = n, .k = 2, .groups = 2}},
                   {},
                   {empty(24, 1, DType::kInt32), empty(24, 1, DType::kInt32), empty(24, 1, DType::kInt32)}});
  cases.push_back({"embedding",
                   {.kind = OpKind::kEmbedding, .shape = {.m = m, .n = n, .k = k}},
                   {whole_numbers(41, m, 400), random_operand(42, n, k)},
                   {empty(m, k)}});
  cases.push_back({"embedding_grad",
                   {.kind = OpKind::kEmbeddingGrad, .shape = {.m = m, .n = n, .k = k}},
                   {whole_numbers(43, m, 9), random_operand(44, m, k)},
                   {random_operand(45, n, k, kFp32)}});
  cases.push_back({"cross_entropy_stats",
                   {.kind = OpKind::kCrossEntropyStats, .shape = {.m = m, .n = n}},
                   {random_operand(46, m, n, kBf16, 3), whole_numbers(47, m, 400)},
                   {empty(m, 3, kFp32)}});
  OperandCase stats{2 * m, 3, kFp32, {}};  // of two shards
  for (std::int64_t i = 0; i < 2 * m; ++i) {
    const float seed = static_cast<float>(i);
    stats.values.insert(stats.values.end(), {5 + seed / 50, 100 + seed, seed / 30});
  }
  cases.push_back({"cross_entropy",
                   {.kind = OpKind::kCrossEntropy, .scale = 0.25f, .shape = {.m = m, .n = n, .groups = 2}},
                   {random_operand(48, m, n, kBf16, 3), whole_numbers(49, m, 400), stats},
                   {{1, 1, kFp32, {2.5f}}, empty(m, n)}});
  OpCase adam{"adam", {.kind = OpKind::kAdam, .shape = {.m = 150, .n = 1}}, {}, {}, true};
  adam.inputs = {random_operand(50, 30, 5, kFp32), random_operand(51, 30, 5),
                 random_operand(52, 150, 1, kFp32), random_operand(53, 150, 1),
                 random_operand(54, 150, 1, kFp32)};
  for (float& second : adam.inputs[4].values) second = std::abs(second);
  cases.push_back(adam);
  adam.name = "adam of clipped gradients";
  adam.op.scale = 0.5f;
  adam.inputs.push_back({1, 1, kFp32, {4.f}});
  cases.push_back(adam);
  cases.push_back({"sum_squares",
                   {.kind = OpKind::kSumSquares, .scale = 0.5f, .shape = {.m = 150, .n = 1}},
                   {random_operand(55, 30, 5, kFp32)},
                   {{1, 1, kFp32, {2.5f}}}});
  return cases;
}

std::vector<OpCase> routed() {
  constexpr int kTokens = 37, kExperts = 6, kActive = 2;
  constexpr std::int64_t n = 150, k = 40, copies = kTokens * kActive;
  const RoutePtr route = route_of_one(kTokens);
  std::vector<OpCase> cases;
  const auto add = [&](const std::string& name, OpKind kind, const Shape& shape, Operands in, Operands out) {
    cases.push_back(
        {name, {.kind = kind, .scale = 2.5f, .shape = shape}, std::move(in), std::move(out), false, route});
  };
  for (const DType operand : {kBf16, kFp8}) {
    const std::string name = operand == kFp8 ? " of FP8" : "";
    add("grouped_gemm" + name, OpKind::kGroupedGemm, {.m = copies, .n = k, .k = n, .groups = kExperts},
        {random_operand(71, copies, n, operand), random_weight(72, kExperts * k, n, operand, 1, kExperts)},
        {empty(copies, k)});
    add("permute" + name, OpKind::kPermute, {.m = copies, .n = n, .k = kActive},
        {random_operand(73, kTokens, n, operand), random_operand(74, kTokens, kActive, kFp32)},
        {empty(copies, n, operand), empty(copies, 1, kFp32)});
    add("unpermute_grad" + name, OpKind::kUnpermuteGrad, {.m = copies, .n = n},
        {random_operand(75, kTokens, n, operand)}, {empty(copies, n, operand)});
  }
  for (const DType operand : {kBf16, kFp8}) {
    add(operand == kFp8 ? "grouped_gemm_dgrad of FP8" : "grouped_gemm_dgrad", OpKind::kGroupedGemmDgrad,
        {.m = copies, .n = n, .k = k, .groups = kExperts},
        {random_operand(76, copies, k, operand), random_weight(77, kExperts * k, n, operand, 1, kExperts)},
        {empty(copies, n)});
  }
  add("grouped_gemm_wgrad", OpKind::kGroupedGemmWgrad, {.m = k, .n = n, .k = copies, .groups = kExperts},
      {random_operand(78, copies, k), random_operand(79, copies, n)},
      {random_operand(80, kExperts * k, n, kFp32)});
  add("permute_grad", OpKind::kPermuteGrad, {.m = copies, .n = n, .k = kActive},
      {random_operand(81, copies, n), random_operand(82, copies, 1, kFp32)},
      {empty(kTokens, n), empty(kTokens, kActive, kFp32)});
  add("unpermute", OpKind::kUnpermute, {.m = copies, .n = n}, {random_operand(83, copies, n)},
      {empty(kTokens, n)});
  for (const int sigmoid : {0, 1}) {
    const Shape shape{.m = kTokens, .n = kExperts, .k = kActive, .groups = sigmoid};
    const std::string name = sigmoid ? " of sigmoids" : " of exponentials";
    add("gate" + name, OpKind::kGate, shape, {random_operand(84, kTokens, kExperts)},
        {empty(kTokens, kActive, kFp32)});
    add("gate_grad" + name, OpKind::kGateGrad, shape,
        {random_operand(85, kTokens, kActive, kFp32), random_operand(86, kTokens, kExperts)},
        {empty(kTokens, kExperts)});
  }
  return cases;
}

double root_mean_square(const std::vector<float>& x) {
  double squares = 0;
  for (const float value : x) squares += static_cast<double>(value) * value;
  return std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, x.size())));
}

// How many elements of an output are too far off, and the first of them for the message.
void check_output(const OpCase& one, const OpResults& results, std::size_t i, double relative) {
  const std::vector<float>&expected = results.host[i], &found = results.device[i];
  INFO(one.name << ", output " << i);
  REQUIRE(!expected.empty());
  REQUIRE(found.size() == expected.size());
  const OperandCase& output = (one.in_place ? one.inputs : one.outputs)[i];
  const cuda::Storage storage = cuda::storage_of(output.dtype);
  const double rms = root_mean_square(expected);
  std::size_t far = 0, first = 0;
  for (std::size_t at = expected.size(); at-- > 0;) {
    if (!cuda::near_enough(found[at], expected[at], rms, relative, storage)) ++far, first = at;
  }
  INFO("first at " << first << ": found " << found[first] << ", expected " << expected[first] << ", rms "
                   << rms);
  CHECK(far == 0);
}

void check_case(const OpCase& one) {
  const OpResults results = execute_both(one);
  const double relative = cuda::relative_error(cuda::closeness_of(one.op.kind));
  for (std::size_t i = 0; i < results.host.size(); ++i) check_output(one, results, i, relative);
}

// By kernels on tensor cores: the library's, or our own.
void check_on_tensor_cores(const OpCase& one, const cuda::CudaOptions& options) {
  const OpResults results = execute_both(one, options);
  const double relative = one.inputs[0].dtype == kFp8 ? cuda::kEightBitError : cuda::kTensorCoreError;
  for (std::size_t i = 0; i < results.host.size(); ++i) check_output(one, results, i, relative);
}

bool is_product(OpKind kind) {
  return cuda::closeness_of(kind) == cuda::Closeness::kSum && kind != OpKind::kNormGrad &&
         kind != OpKind::kAttention && kind != OpKind::kAttentionGrad;
}

void check_cases(const std::vector<OpCase>& cases) {
  for (const OpCase& one : cases) check_case(one);
}

}  // namespace

TEST_CASE("matrix products by the plain kernel") {
  NEEDS_DEVICE();
  check_cases(products());
  check_cases(aligned_products());
}

TEST_CASE("matrix products by the library, where it is there") {
  NEEDS_DEVICE();
  for (const auto& cases : {products(), aligned_products(), routed()}) {
    for (const OpCase& one : cases) {
      if (is_product(one.op.kind))
        check_on_tensor_cores(one, {.tensor_cores = false, .grouped = cuda::GroupedPath::kLoop});
    }
  }
}

TEST_CASE("8-bit products by our own kernel on tensor cores") {
  NEEDS_DEVICE();
  for (const auto& cases : {products(), aligned_products()}) {
    for (const OpCase& one : cases) {
      if (one.inputs[0].dtype == kFp8) check_on_tensor_cores(one, {.library_gemm = false});
    }
  }
}

TEST_CASE("products of all experts in one launch and as one graph") {
  NEEDS_DEVICE();
  for (const OpCase& one : routed()) {
    if (!is_product(one.op.kind)) continue;
    check_on_tensor_cores(one, {.library_gemm = false, .grouped = cuda::GroupedPath::kGrouped});
    check_on_tensor_cores(one, {.grouped = cuda::GroupedPath::kGraph});
  }
}

TEST_CASE("norms, positions, activations, copies and changes of format") {
  NEEDS_DEVICE();
  check_cases(rows_and_elements());
}

TEST_CASE("tokens, the loss and the optimizer") {
  NEEDS_DEVICE();
  check_cases(tokens());
}

TEST_CASE("attention over several chunks of keys") {
  NEEDS_DEVICE();
  check_cases(attentions());
}

TEST_CASE("attention on tensor cores, where heads fit") {
  NEEDS_DEVICE();
  for (const OpCase& one : attentions()) {
    const OpResults results = execute_both(one, {});
    for (std::size_t i = 0; i < results.host.size(); ++i) check_output(one, results, i, cuda::kFlashError);
  }
}

TEST_CASE("experts, their gate and the copies of tokens") {
  NEEDS_DEVICE();
  check_cases(routed());
}

TEST_CASE("batches over a paged cache") {
  NEEDS_DEVICE();
  check_cases(batch_cases());
}

TEST_CASE("every compute op has a case") {
  NEEDS_DEVICE();  // some cases are made by executing others
  std::set<OpKind> seen;
  for (const auto& cases :
       {products(), rows_and_elements(), tokens(), attentions(), routed(), batch_cases()}) {
    for (const OpCase& one : cases) seen.insert(one.op.kind);
  }
  for (int i = 0; i < kNumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    INFO(to_string(kind));
    CHECK((is_communication(kind) || seen.count(kind) == 1));
  }
}

}  // namespace moebius
