#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {
namespace {

// Attention hides beside the other half batch until it is the longer of the two.
double hidden_seconds(const StepPoint& point) {
  return 0.05 + std::max(0.05, 2e-5 * static_cast<double>(point.decode_keys));
}

TEST_CASE("a finer grid of keys follows iterations whose attention hides until it is long") {
  StepSurface coarse(hidden_seconds), fine(hidden_seconds, nullptr, StepSurface::KeyStep::kFine);
  double coarse_error = 0, fine_error = 0;
  for (std::int64_t keys = 300; keys < 4096; keys += 37) {
    const StepPoint point{.decode_sequences = 128, .decode_keys = keys};
    const double seconds = hidden_seconds(point);
    coarse_error = std::max(coarse_error, std::abs(coarse.at(point) / seconds - 1));
    fine_error = std::max(fine_error, std::abs(fine.at(point) / seconds - 1));
  }
  CHECK(coarse_error > 0.1);
  CHECK(fine_error < 0.08);
  CHECK(fine.measured() <= 10);
}

// 10 ms where a graph is replayed, 30 where kernels are launched one by one, up to whichever size.
TEST_CASE("what a graph replays and what is launched kernel by kernel are interpolated apart") {
  StepSurface surface([](const StepPoint& point) {
    return (point.eager ? 0.03 : 0.01) + 1e-6 * static_cast<double>(point.decode_sequences);
  });
  const auto seconds = [&](std::int32_t sequences, bool eager) {
    StepShape shape;
    shape.decode_sequences = shape.decode_tokens = sequences;
    shape.eager = eager;
    return surface.seconds(std::vector{shape});
  };
  // 160 captured: its edges are 128 and 192, on either side of it.
  for (const std::int32_t sequences : {150, 160})
    CHECK(seconds(sequences, false) == Approx(0.01 + 1e-6 * sequences));
  for (const std::int32_t sequences : {161, 190})
    CHECK(seconds(sequences, true) == Approx(0.03 + 1e-6 * sequences));
  CHECK(surface.measured() == 4);
}

// Two devices that compute by a table for a microsecond a row each, and wait for the network meanwhile.
StepTime told_by_rows(const StepPoint& point) {
  const double seconds = 1e-6 * static_cast<double>(point.decode_sequences);
  BusySources busy;
  busy.seconds[static_cast<int>(Origin::kMeasured)] = 2 * seconds;
  busy.seconds[static_cast<int>(Origin::kNetwork)] = 1e-6;
  busy.error = 0.1 * 2 * seconds;
  return {seconds, busy};
}

TEST_CASE("a surface says where the time of the iterations comes from that were asked for") {
  StepSurface surface(told_by_rows);
  const auto of_rows = [](std::int32_t rows) {
    StepShape shape;
    shape.decode_sequences = shape.decode_tokens = rows;
    return shape;
  };
  double seconds = 0;
  for (const std::int32_t rows : {5, 100, 37}) seconds += surface.seconds(std::vector{of_rows(rows)});
  surface.forecast(std::vector{of_rows(1000)});  // nobody carries it out
  surface.at({.decode_sequences = 10});
  const BusySources busy = surface.busy();
  CHECK(seconds == Approx(142e-6));
  CHECK(busy.seconds[static_cast<int>(Origin::kMeasured)] == Approx(2 * 142e-6));
  CHECK(busy.seconds[static_cast<int>(Origin::kNetwork)] == Approx(3e-6));
  CHECK(busy.error == Approx(0.1 * 2 * 142e-6));
}

TEST_CASE("of an iteration the replica counts that is waited for") {
  StepSurface surface([](const StepPoint& point) {
    StepTime time = told_by_rows(point);
    time.seconds += 1e-3 * static_cast<double>(point.decode_keys);
    return time;
  });
  StepShape many_rows, many_keys;
  many_rows.decode_sequences = many_rows.decode_tokens = 64;
  many_rows.decode_context = 64;
  many_keys.decode_sequences = many_keys.decode_tokens = 16;
  many_keys.decode_context = 16 * 256;
  surface.seconds(std::vector{many_rows, many_keys});
  CHECK(surface.busy().seconds[static_cast<int>(Origin::kMeasured)] == Approx(2 * 16e-6));
}

// Absorbed prompts take three times as long a pair, on either side of the edges of rows and keys.
TEST_CASE("prompts that absorb and those that do not are interpolated apart") {
  StepSurface surface([](const StepPoint& point) {
    return (point.absorbed ? 3e-9 : 1e-9) * static_cast<double>(point.prefill_tokens * point.prefill_keys);
  });
  const auto of = [](std::int64_t tokens, std::int64_t keys, bool absorbed) {
    StepShape shape;
    shape.prefill_tokens = tokens;
    shape.prefill_pairs = tokens * keys;
    shape.prefill_sequences = 1;
    shape.absorbed = absorbed;
    return shape;
  };
  const auto seconds = [&](std::vector<StepShape> replicas) { return surface.seconds(replicas); };
  CHECK(seconds({of(3000, 2000, false)}) == Approx(1e-9 * 3000 * 2000));
  CHECK(seconds({of(3000, 2000, true)}) == Approx(3e-9 * 3000 * 2000));
  // The first has most rows, the second most keys, and both wait for the third.
  const std::vector<StepShape> three = {of(4096, 256, false), of(2048, 1024, false), of(1024, 1024, true)};
  CHECK(seconds(three) == Approx(3e-9 * 1024 * 1024));
}

}  // namespace
}  // namespace moebius
