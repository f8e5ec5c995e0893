// A copy that stays on few multiprocessors: what an exchange kernel does to its neighbours.
#include "real/cuda/kernels.h"
#include "real/cuda/launch.cuh"

namespace moebius::cuda {
namespace {

struct alignas(16) Quad {
  float values[4];
};
constexpr std::int64_t kInFlight = 4;  // quads that a thread has under way

struct CopyStripe {
  const Quad* from;
  Quad* to;
  std::int64_t step;  // a quarter of the stripe's quads
  int times;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t stripe) const {
    const std::int64_t first = stripe * step * kInFlight;
    for (int time = 0; time < times; ++time)
      team.each(step, [&](std::int64_t i) {
        Quad held[kInFlight];
        for (std::int64_t part = 0; part < kInFlight; ++part) held[part] = from[first + part * step + i];
        for (std::int64_t part = 0; part < kInFlight; ++part) to[first + part * step + i] = held[part];
      });
  }
};

}  // namespace

std::size_t copy_on_cores(Stream stream, const void* from, void* to, std::size_t bytes,
                          const CopyOnCores& how) {
  const auto step = static_cast<std::int64_t>(bytes / how.cores / (kInFlight * sizeof(Quad)));
  launch_teams(stream, how.cores,
               CopyStripe{static_cast<const Quad*>(from), static_cast<Quad*>(to), step, how.times});
  return static_cast<std::size_t>(step) * kInFlight * sizeof(Quad) * static_cast<std::size_t>(how.cores);
}

}  // namespace moebius::cuda
