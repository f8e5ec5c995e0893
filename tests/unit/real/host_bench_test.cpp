// The bench on the host: every compute kind runs on operands that the table makes for it, and what is timed
// is the op.
#include <catch2/catch.hpp>

#include <cmath>

#include "real/bench/host_bench.h"
#include "real/bench/host_case.h"
#include "real/bench/repetitions.h"
#include "tests/unit/real/op_shapes.h"

namespace moebius {
namespace {

constexpr StoppingRule kOnce{.precision = 1, .least = 1, .most = 1, .most_seconds = 0};

}  // namespace

TEST_CASE("every compute op runs on the operands that the table makes for it") {
  Patterns patterns(1);
  for (int i = 0; i < kNumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (is_communication(kind)) continue;
    for (const DType dtype : {DType::kBf16, DType::kFp8}) {
      INFO(to_string(kind) << " in " << to_string(dtype));
      HostCase one(operands_of({.kind = kind, .shape = small_shape(kind), .dtype = dtype}), patterns);
      for (int repetition = 0; repetition < 2; ++repetition) {
        one.flush();
        CHECK(one.execute() > 0);
      }
      const std::vector<float> result = one.output(0);
      REQUIRE(!result.empty());
      for (const float value : result) CHECK(std::isfinite(value));
    }
  }
}

TEST_CASE("a grouped op has the rows of each expert that it is asked for") {
  // 5 rows of expert 0, none of 1, 2 of expert 2: seven rows of results.
  const std::vector<std::int32_t> rows{5, 0, 2};
  Patterns patterns(1);
  HostCase one(operands_of({.kind = OpKind::kGroupedGemm,
                            .shape = {.m = 7, .n = 4, .k = 8, .groups = 3},
                            .dtype = DType::kFp32,
                            .rows = rows}),
               patterns);
  one.execute();
  CHECK(one.output(0).size() == 7 * 4);
}

TEST_CASE("sequences of a recurrence have all rows that are asked for, whatever their number divides") {
  // 55 tokens of four sequences: 14, 14, 14 and 13; two of three sequences at most have one.
  for (const OpKind kind : {OpKind::kConvolution, OpKind::kDeltaRule}) {
    Shape shape = small_shape(kind);
    shape.m = 55;
    shape.groups = 4;
    CHECK(operands_of({.kind = kind, .shape = shape, .dtype = DType::kBf16}).batch->rows() == 55);
    shape.m = 2;
    shape.groups = 3;
    CHECK(operands_of({.kind = kind, .shape = shape, .dtype = DType::kBf16}).batch->rows() == 2);
  }
}

TEST_CASE("attention over unequal sequences is an op for each number of keys") {
  const std::vector<std::int32_t> keys{9, 4, 9};
  const Shape shape{.m = 6, .groups = 3, .heads = 1, .kv_heads = 1, .head_dim = 4, .v_dim = 4};
  const auto parts = parts_of({.kind = OpKind::kAttention, .shape = shape, .rows = keys});
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].shape.kv == 4);
  CHECK(parts[0].shape.m == 2);
  CHECK(parts[1].shape.kv == 9);
  CHECK(parts[1].shape.groups == 2);
  CHECK(parts[1].shape.m == 4);
  CHECK(
      make_host_bench()->measure({.kind = OpKind::kAttention, .shape = shape, .rows = keys}, kOnce).seconds >
      0);
}

TEST_CASE("a product that quantises its own activations is timed with that") {
  const auto parts = parts_of({.kind = OpKind::kGemm,
                               .shape = {.m = 4, .n = 16, .k = 8},
                               .dtype = DType::kFp8,
                               .fused_quantise = true});
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].kind == OpKind::kQuantise);
  CHECK(parts[0].shape.m == 4);
  CHECK(parts[0].shape.n == 8);
  CHECK(parts[1].kind == OpKind::kGemm);
  CHECK_FALSE(parts[1].fused_quantise);
}

TEST_CASE("a product of eight times the work takes longer") {
  const auto bench = make_host_bench();
  const auto seconds = [&](std::int64_t k) {
    return bench
        ->measure({.kind = OpKind::kGemm, .shape = {.m = 64, .n = 256, .k = k}}, {.most_seconds = 0.2})
        .seconds;
  };
  CHECK(seconds(2048) > seconds(256));
}

TEST_CASE("an op that memory does not hold is refused with both sizes") {
  // 2^20 x 2^20 elements of 32 bits, three times
  const std::int64_t huge = std::int64_t{1} << 20;
  CHECK_THROWS_WITH(
      make_host_bench()->measure({.kind = OpKind::kAdd, .shape = {.m = huge, .n = huge}}, kOnce),
      Catch::StartsWith("add of m 1048576, n 1048576 in bf16: its operands take 13.2 TB on the host, ") &&
          Catch::EndsWith(" are free"));
}

TEST_CASE("repetitions end when the median is precise or the limit is reached") {
  int calls = 0;
  const OpMeasurement steady = repeat({.precision = 0.01, .least = 5, .most = 200, .most_seconds = 100}, [&] {
    ++calls;
    return 2.0;
  });
  CHECK(calls == 6);  // the first one warms up
  CHECK(steady.repetitions == 5);
  CHECK(steady.seconds == 2.0);
  CHECK(steady.spread == 0);
  // Times 1 and 3 in turn never settle: as many as are allowed.
  calls = 0;
  const OpMeasurement wild = repeat({.precision = 0.001, .least = 2, .most = 20, .most_seconds = 100},
                                    [&] { return ++calls % 2 == 0 ? 1.0 : 3.0; });
  CHECK(wild.repetitions == 20);
  CHECK(wild.seconds == Approx(2.0));
  CHECK(wild.spread == Approx(0.5));  // quartiles 1 and 3, median 2
}

}  // namespace moebius
