// The ways to give the products of all experts to the device, side by side: equal results, and on a device
// their times, from which GroupedPath's default is chosen.
#include <algorithm>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "tests/gpu/op_case.h"

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

OpCase grouped(const Sizes& size, DType dtype) {
  const std::int64_t copies = 2 * size.tokens;
  OpCase one{
      "grouped_gemm",
      {.kind = OpKind::kGroupedGemm,
       .shape = {.m = copies, .n = size.n, .k = size.k, .groups = size.experts}},
      {{copies, size.k, dtype, some_values(copies * size.k)},
       {size.experts * size.n, size.k, dtype, some_values(size.experts * size.n * size.k), size.experts}},
      {{copies, size.n, DType::kBf16, {}}},
      false,
      std::make_shared<const Route>(RouteSpec{.seed = 9,
                                              .popularity = {.kind = PopularityKind::kZipf, .exponent = 0.5},
                                              .ranks = 1,
                                              .ranks_per_node = 1,
                                              .experts = size.experts,
                                              .active = 2,
                                              .tokens = size.tokens})};
  return one;
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

// How far two results lie apart is rounding to BF16 on different sides of a tie.
void compare_paths(const Sizes& size, DType dtype) {
  const OpCase one = grouped(size, dtype);
  const Timed loop = time_path(one, cuda::GroupedPath::kLoop);
  std::string table = fmt::format("{} experts, {} rows, n {}, k {}, {}: loop {:.1f} us", size.experts,
                                  2 * size.tokens, size.n, size.k, to_string(dtype), loop.seconds * 1e6);
  for (const auto& [path, name] :
       {std::pair{cuda::GroupedPath::kGraph, "graph"}, {cuda::GroupedPath::kGrouped, "one launch"}}) {
    const Timed other = time_path(one, path);
    table += fmt::format(", {} {:.1f} us", name, other.seconds * 1e6);
    INFO(name);
    CHECK(difference(other.result, loop.result) < 0x1p-5);
  }
  if (cuda::open_device().major > 0) WARN(table);  // times of a rehearsal say nothing
}

}  // namespace

TEST_CASE("experts by a loop and as a graph and in one launch") {
  NEEDS_DEVICE();
  const bool rehearsal = cuda::open_device().major == 0;
  const std::vector<Sizes> sizes =
      rehearsal ? std::vector<Sizes>{{6, 40, 80, 96}}
                : std::vector<Sizes>{{64, 512, 512, 1024}, {16, 1024, 1024, 2048}, {8, 8192, 1024, 2048}};
  for (const Sizes& size : sizes) {
    for (const DType dtype : {DType::kBf16, DType::kFp8}) compare_paths(size, dtype);
  }
}

}  // namespace moebius
