// The ways to give the products of all experts to the device, side by side: equal results, and on a device
// their times, from which GroupedPath's default is chosen, and those of the kernels alone.
#include <algorithm>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "tests/gpu/grouped_operands.h"

namespace moebius {
namespace {

struct Sizes {
  int experts, tokens;  // each token goes to two experts
  std::int64_t n, k;
};

std::vector<float> some_values(std::int64_t count) {
  std::vector<float> x(count);
  for (std::int64_t i = 0; i < count; ++i) x[i] = static_cast<float>(i * 7919 % 31 - 15) / 16;
  return x;
}

RoutePtr route_of(const Sizes& size) {
  return std::make_shared<const Route>(
      RouteSpec{.seed = 9,
                .popularity = {.kind = PopularityKind::kZipf, .exponent = 0.5},
                .ranks = 1,
                .ranks_per_node = 1,
                .experts = size.experts,
                .active = 2,
                .tokens = size.tokens});
}

OpCase grouped(const Sizes& size, DType dtype, GroupedKind kind) {
  const std::int64_t copies = 2 * size.tokens, n = size.n, k = size.k, experts = size.experts;
  const OperandCase weights{experts * n, k, dtype, some_values(experts * n * k), size.experts};
  const auto rows = [&](std::int64_t columns) {
    return OperandCase{copies, columns, dtype, some_values(copies * columns)};
  };
  if (kind == GroupedKind::kForward) {
    return {"grouped_gemm",
            {.kind = OpKind::kGroupedGemm, .shape = {.m = copies, .n = n, .k = k, .groups = size.experts}},
            {rows(k), weights},
            {{copies, n, DType::kBf16, {}}},
            false,
            route_of(size)};
  }
  if (kind == GroupedKind::kDgrad) {
    return {
        "grouped_gemm_dgrad",
        {.kind = OpKind::kGroupedGemmDgrad, .shape = {.m = copies, .n = k, .k = n, .groups = size.experts}},
        {rows(n), weights},
        {{copies, k, DType::kBf16, {}}},
        false,
        route_of(size)};
  }
  return {"grouped_gemm_wgrad",
          {.kind = OpKind::kGroupedGemmWgrad, .shape = {.m = n, .n = k, .k = copies, .groups = size.experts}},
          {rows(n), rows(k)},
          {{experts * n, k, DType::kFp32, some_values(experts * n * k)}},
          false,
          route_of(size)};
}

struct Timed {
  std::vector<float> result;
  double seconds;  // the best of several
};

Timed time_path(const OpCase& one, cuda::GroupedPath path) {
  constexpr int kTimes = 6;
  const Layout layout = one_group(1, GroupRole::kExpert);
  Recorder recorder(layout, RecorderOptions{});
  const auto device = make_cuda_executor(layout, recorder, {.grouped = path});
  for (std::size_t i = 0; i < one.inputs.size(); ++i)
    device->set_parameter(0, kFirstInput + i, one.inputs[i].values);
  if (!one.outputs[0].values.empty()) device->set_parameter(0, kFirstOutput, one.outputs[0].values);
  const FragmentPtr fragment = fragment_of(one);
  for (std::int32_t sequence = 0; sequence < kTimes; ++sequence) {
    const Submission submission{.fragment = fragment, .sequence = sequence, .after = {}};
    recorder.submitted(submission);
    device->submit(submission);
  }
  device->finish();
  double best = INFINITY;
  for (const Span& span : recorder.timeline().spans)
    best = std::min(best, static_cast<double>((span.end - span.start).ns) * 1e-9);
  return {device->tensor(0, kFirstOutput), best};
}

// The kernels of one launch alone, one run after the other.
std::string time_kernels(const Sizes& size, DType dtype, GroupedKind kind) {
  const bool wgrad = kind == GroupedKind::kWgrad;
  const cuda::Storage codes = wgrad ? cuda::Storage::kFp8Columns : cuda::Storage::kFp8Rows;
  GroupedOperands operands({.kind = kind,
                            .rows = plan_route(*route_of(size), 0).expert_rows,
                            .n = size.n,
                            .k = size.k,
                            .operands = dtype == DType::kFp8 ? codes : cuda::Storage::kBf16,
                            .result = wgrad ? cuda::Storage::kFp32 : cuda::Storage::kBf16});
  std::string table;
  const auto time = [&](const std::string& name, const auto& run) {
    const double seconds = operands.seconds(run);
    table += fmt::format("; {} {:.1f} us, {:.0f} TFLOP/s", name, seconds * 1e6,
                         operands.operations() / seconds * 1e-12);
  };
  time("warps alone", [&] { operands.multiply_by_warps(); });
  if (!operands.suits_warpgroups()) return table;
  if (operands.turns()) time("transposing", [&] { operands.turn(); });
  for (const int width : {128, 256})
    time(fmt::format("warpgroups x {}", width), [&] { operands.multiply_by_warpgroups(width); });
  return table;
}

// How far two results lie apart is rounding to BF16 on different sides of a tie.
void compare_paths(const Sizes& size, DType dtype, GroupedKind kind) {
  const OpCase one = grouped(size, dtype, kind);
  const Timed loop = time_path(one, cuda::GroupedPath::kLoop);
  std::string table =
      fmt::format("{}, {} experts, {} rows, n {}, k {}, {}: loop {:.1f} us", one.name, size.experts,
                  2 * size.tokens, size.n, size.k, to_string(dtype), loop.seconds * 1e6);
  for (const auto& [path, name] :
       {std::pair{cuda::GroupedPath::kGraph, "graph"}, {cuda::GroupedPath::kGrouped, "one launch"}}) {
    const Timed other = time_path(one, path);
    table += fmt::format(", {} {:.1f} us", name, other.seconds * 1e6);
    INFO(one.name << " " << name);
    CHECK(difference(other.result, loop.result) < 0x1p-5);
  }
  // Times of a rehearsal say nothing.
  if (cuda::open_device().major > 0) WARN(table + time_kernels(size, dtype, kind));
}

}  // namespace

TEST_CASE("experts by a loop and as a graph and in one launch") {
  NEEDS_DEVICE();
  const bool rehearsal = cuda::open_device().major == 0;
  const std::vector<Sizes> sizes =
      rehearsal ? std::vector<Sizes>{{6, 40, 80, 96}}
                : std::vector<Sizes>{{64, 512, 512, 1024}, {16, 1024, 1024, 2048}, {8, 8192, 1024, 2048}};
  for (const Sizes& size : sizes) {
    for (const DType dtype : {DType::kBf16, DType::kFp8}) {
      compare_paths(size, dtype, GroupedKind::kForward);
      if (&size == &sizes.back()) compare_paths(size, dtype, GroupedKind::kDgrad);
    }
  }
  compare_paths(sizes.back(), DType::kBf16, GroupedKind::kWgrad);
  // Rows would have to be cast by columns before they are an op's.
  if (!rehearsal)
    WARN("grouped_gemm_wgrad of FP8" + time_kernels(sizes.back(), DType::kFp8, GroupedKind::kWgrad));
}

}  // namespace moebius
