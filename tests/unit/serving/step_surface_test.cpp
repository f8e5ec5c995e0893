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
  StepSurface coarse(hidden_seconds), fine(hidden_seconds, nullptr, StepSurface::kOverlappedKeyStep);
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

}  // namespace
}  // namespace moebius
