// 8-bit products in the library's form: what it takes, and weight gradients, whose operands are cast along
// the tokens first.
#include <catch2/catch.hpp>

#include "real/cuda/fp8_gemm.h"
#include "real/cuda/tolerances.h"
#include "tests/gpu/op_case.h"

namespace moebius {
namespace {

using cuda::has_library_form;
cuda::Operand codes(std::int64_t rows, std::int64_t columns, cuda::Storage storage) {
  cuda::Operand x;
  x.rows = rows;
  x.columns = columns;
  x.storage = storage;
  x.period = rows;
  return x;
}

cuda::Operand plain(std::int64_t rows, std::int64_t columns) {
  return codes(rows, columns, cuda::Storage::kBf16);
}

// Of one rank that holds all experts. The most popular has more than a tile of rows; the others begin inside
// of blocks of scales.
RoutePtr uneven_route() {
  return std::make_shared<const Route>(RouteSpec{.seed = 9,
                                                 .popularity = {.kind = PopularityKind::kZipf, .exponent = 1},
                                                 .ranks = 1,
                                                 .ranks_per_node = 1,
                                                 .experts = 6,
                                                 .active = 2,
                                                 .tokens = 190});
}
constexpr std::int64_t kCopies = 2 * 190, kExperts = 6;

// dW = dy^T x of `tokens`, both cast anew by columns; with a route of each expert's.
template <class SomeExecutor>
std::vector<float> weight_gradient(SomeExecutor& executor, Recorder& recorder, std::int64_t tokens,
                                   const RoutePtr& route = nullptr) {
  constexpr std::int64_t n = 80, k = 48;
  const std::int64_t experts = route ? kExperts : 1;
  FragmentBuilder builder("weight gradient", Phase::kBackward);
  const auto tensor = [&](std::uint32_t key, std::int64_t rows, std::int64_t columns, DType dtype) {
    Tensor made = kept(key, rows, columns);
    made.dtype = dtype;
    return builder.add(made);
  };
  const TensorId dy = tensor(1, tokens, n, DType::kBf16), x = tensor(2, tokens, k, DType::kBf16);
  const TensorId left = builder.transient(tokens, n, DType::kFp8, Role::kNone);
  const TensorId right = builder.transient(tokens, k, DType::kFp8, Role::kNone);
  const TensorId dw = tensor(3, experts * n, k, DType::kFp32);
  const auto cast = [&](TensorId from, TensorId to, std::int64_t columns) {
    builder.emit(
        {.kind = OpKind::kTransposeQuantise, .dtype = DType::kFp8, .shape = {.m = tokens, .n = columns}},
        {from}, {to});
  };
  cast(dy, left, n);
  cast(x, right, k);
  Op op{.kind = OpKind::kGemmWgrad, .dtype = DType::kFp8, .shape = {.m = n, .n = k, .k = tokens}};
  if (route) {
    op.kind = OpKind::kGroupedGemmWgrad;
    op.route = builder.add_route(route);
  }
  builder.emit(op, {left, right}, {dw});
  executor.set_parameter(0, 1, random_numbers(301, tokens * n));
  executor.set_parameter(0, 2, random_numbers(302, tokens * k));
  executor.set_parameter(0, 3, random_numbers(303, experts * n * k));
  const Submission submission{.fragment = builder.freeze_it(), .after = {}};
  recorder.submitted(submission);
  executor.submit(submission);
  executor.finish();
  return executor.tensor(0, 3);
}

}  // namespace

TEST_CASE("the library takes 8-bit operands whose scales begin where they do") {
  const cuda::Operand x = codes(64, 256, cuda::Storage::kFp8Rows),
                      w = codes(80, 256, cuda::Storage::kFp8Blocks);
  CHECK(has_library_form({.a = x, .b = w, .c = plain(64, 80), .b_transposed = true}));
  const cuda::Operand dy = codes(64, 80, cuda::Storage::kFp8Rows);
  CHECK(has_library_form({.a = dy, .b = w, .c = plain(64, 256)}));
  // Scales along the columns of a weight that is summed over its rows belong to no block of k.
  CHECK_FALSE(has_library_form({.a = dy, .b = codes(80, 256, cuda::Storage::kFp8Rows), .c = plain(64, 256)}));
  CHECK_FALSE(
      has_library_form({.a = w, .b = w, .c = plain(80, 80), .b_transposed = true}));  // blocks of both
  const cuda::Operand odd = codes(61, 256, cuda::Storage::kFp8Rows);
  CHECK_FALSE(has_library_form({.a = odd, .b = w, .c = plain(61, 80), .b_transposed = true}));
  const cuda::Operand tokens = codes(512, 80, cuda::Storage::kFp8Columns);
  const auto gradient = [&](std::int64_t first) {
    return cuda::Gemm{.a = tokens.some_rows(first, 64),
                      .b = codes(512, 48, cuda::Storage::kFp8Columns).some_rows(first, 64),
                      .c = plain(80, 48),
                      .a_transposed = true,
                      .accumulate = true};
  };
  CHECK(has_library_form(gradient(256)));
  CHECK_FALSE(has_library_form(gradient(200)));  // an expert's rows that begin inside a block
}

TEST_CASE("an 8-bit weight gradient by the library and by both kernels is the host's") {
  NEEDS_DEVICE();
  const Layout layout = one_group(1, GroupRole::kExpert);
  for (const std::int64_t tokens : {160, 150}) {  // two blocks; the library does not take 150
    Recorder recorder(layout, RecorderOptions{});
    HostExecutor<float> host(layout, recorder, {});
    const std::vector<float> expected = weight_gradient(host, recorder, tokens);
    for (const auto& [library, tensor_cores] : {std::pair{true, false}, {false, true}, {false, false}}) {
      Recorder again(layout, RecorderOptions{});
      const auto device = make_cuda_executor(
          layout, again, {.library_gemm = library, .tensor_cores = tensor_cores, .poison = true});
      INFO(tokens << " tokens, library " << library << ", tensor cores " << tensor_cores);
      CHECK(difference(weight_gradient(*device, again, tokens), expected) < cuda::kEightBitError);
    }
  }
}

TEST_CASE("8-bit weight gradients of all experts in one launch cross the blocks that experts share") {
  NEEDS_DEVICE();
  const Layout layout = one_group(1, GroupRole::kExpert);
  Recorder recorder(layout, RecorderOptions{});
  HostExecutor<float> host(layout, recorder, {});
  const std::vector<float> expected = weight_gradient(host, recorder, kCopies, uneven_route());
  for (const cuda::GroupedPath path : {cuda::GroupedPath::kLoop, cuda::GroupedPath::kGrouped}) {
    Recorder again(layout, RecorderOptions{});
    const auto device = make_cuda_executor(layout, again, {.grouped = path, .poison = true});
    INFO("path " << static_cast<int>(path));
    CHECK(difference(weight_gradient(*device, again, kCopies, uneven_route()), expected) <
          cuda::kEightBitError);
  }
}

TEST_CASE("experts of more rows than a tile in one launch") {
  NEEDS_DEVICE();
  constexpr std::int64_t n = 136, k = 160;
  for (const DType dtype : {DType::kBf16, DType::kFp8}) {
    const OpCase one{
        "grouped_gemm of several tiles",
        {.kind = OpKind::kGroupedGemm, .shape = {.m = kCopies, .n = n, .k = k, .groups = kExperts}},
        {random_operand(304, kCopies, k, dtype), random_weight(305, kExperts * n, k, dtype, 1, kExperts)},
        {{kCopies, n, DType::kBf16, {}}},
        false,
        uneven_route()};
    const OpResults results =
        execute_both(one, {.library_gemm = false, .grouped = cuda::GroupedPath::kGrouped});
    INFO(to_string(dtype));
    CHECK(difference(results.device[0], results.host[0]) < 0x1p-5);  // a step of BF16 at 4 times the mean
  }
}

}  // namespace moebius
