// The bench on the device: every op kind on the operands of the table, ops held to some multiprocessors.
#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>

#include "real/bench/host_case.h"
#include "real/cuda/cuda_bench.h"
#include "real/cuda/cuda_case.h"
#include "tests/gpu/device_tests.h"
#include "tests/unit/real/op_shapes.h"

namespace moebius {
namespace {

constexpr StoppingRule kOnce{.precision = 1, .least = 1, .most = 1, .most_seconds = 0};

}  // namespace

TEST_CASE("every compute op runs on the device on the operands of the table") {
  NEEDS_DEVICE();
  for (int i = 0; i < kNumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (is_communication(kind)) continue;
    for (const DType dtype : {DType::kBf16, DType::kFp8}) {
      INFO(to_string(kind) << " in " << to_string(dtype));
      if (kind >= OpKind::kCacheAppend && dtype == DType::kFp8) continue;  // no caches of 8 bits there
      cuda::CudaCase one(operands_of({.kind = kind, .shape = small_shape(kind), .dtype = dtype}), {},
                         nullptr);
      one.issue(), one.issue();
      const std::vector<float> result = one.output(0);
      REQUIRE(!result.empty());
      for (const float value : result) CHECK(std::isfinite(value));
    }
  }
}

TEST_CASE("host and device make up the same operands for an op") {
  NEEDS_DEVICE();
  // Patterns of both come from one seed: the sums agree but for the order of rounding to BF16.
  const CostQuery query{.kind = OpKind::kAdd, .shape = {.m = 600, .n = 130}};
  Patterns patterns(cuda::CudaOptions().seed);
  HostCase host(operands_of(query), patterns);
  cuda::CudaCase device(operands_of(query), {}, nullptr);
  host.execute();
  device.issue();
  CHECK(host.output(0) == device.output(0));
}

TEST_CASE("the bench on the device times ops cold, hot and in parts") {
  NEEDS_DEVICE();
  const auto bench = make_cuda_bench();
  CHECK(bench->cores() >= 1);
  CHECK(bench->device().rfind("cuda:0, ", 0) == 0);
  CostQuery query{.kind = OpKind::kNorm, .shape = {.m = 32, .n = 256}};
  CHECK(bench->measure(query, kOnce).seconds > 0);
  query.hot = true;
  CHECK(bench->measure(query, kOnce).seconds > 0);
  const std::vector<std::int32_t> keys{9, 4, 9};
  const Shape shape{.m = 6, .groups = 3, .heads = 1, .kv_heads = 1, .head_dim = 4, .v_dim = 4};
  CHECK(bench->measure({.kind = OpKind::kAttention, .shape = shape, .rows = keys}, kOnce).seconds > 0);
}

TEST_CASE("a format that the device does not store is told with the op") {
  NEEDS_DEVICE();
  CHECK_THROWS_WITH(
      make_cuda_bench()->measure(
          {.kind = OpKind::kGemm, .shape = {.m = 8, .n = 8, .k = 8}, .dtype = DType::kInt4}, kOnce),
      "gemm of m 8, n 8, k 8 in int4: cuda does not store int4 yet");
}

TEST_CASE("multiprocessors are held until they are let go") {
  NEEDS_DEVICE();
  auto* words = static_cast<int*>(cuda::allocate_pinned(2 * sizeof(int)));
  words[0] = words[1] = 0;
  const cuda::Stream stream = cuda::make_stream();
  cuda::occupy(stream, 1, words, words + 1);
  while (std::atomic_ref<int>(words[0]).load() < 1) {
  }
  CHECK(std::atomic_ref<int>(words[0]).load() == 1);
  std::atomic_ref<int>(words[1]).store(1);
  cuda::synchronise(stream);  // hangs if they are not
  cuda::destroy(stream);
  cuda::release_pinned(words);
}

TEST_CASE("an op held to half of the multiprocessors takes longer") {
  NEEDS_DEVICE();
  const auto bench = make_cuda_bench();
  if (bench->cores() < 2) return;  // the rehearsal has one
  CostQuery query{.kind = OpKind::kGemm, .shape = {.m = 4096, .n = 4096, .k = 4096}};
  const double whole = bench->measure(query, {}).seconds;
  query.cores = bench->cores() / 2;
  CHECK(bench->measure(query, {}).seconds > 1.3 * whole);
}

}  // namespace moebius
