// A GEMM as the libraries run it: the output cut into tiles, one tile a core, wave after wave; the tile is
// the one that ends first. A last wave with one tile costs as much as a full one: that is the staircase of
// measured kernels.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/layer_math.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr double kStepBytes = 128;      // of k that one step of the loop consumes
constexpr double kAccumulateBytes = 8;  // FP32 gradient, read and written

struct GemmWork {
  std::span<const std::int32_t> rows;  // of each expert, when known
  double m = 0, n = 0, k = 0;          // of one expert
  double experts = 1;
  double in = 0, out = 0;  // bytes of an element, its share of scales included
  double step_k = 64;      // elements of k in one step
  bool split = false;      // the library may cut k among cores
};

bool is_weight_gradient(OpKind kind) {
  return kind == OpKind::kGemmWgrad || kind == OpKind::kGroupedGemmWgrad;
}

bool is_grouped(OpKind kind) {
  return kind == OpKind::kGroupedGemm || kind == OpKind::kGroupedGemmDgrad ||
         kind == OpKind::kGroupedGemmWgrad;
}

GemmWork work_of(const CostQuery& query) {
  const Shape shape = loaded_shape(query);
  GemmWork work{.rows = query.rows,
                .m = static_cast<double>(shape.m),
                .n = static_cast<double>(shape.n),
                .k = static_cast<double>(shape.k)};
  if (is_grouped(query.kind)) {
    double& tokens = query.kind == OpKind::kGroupedGemmWgrad ? work.k : work.m;
    work.experts = std::max(1.0, std::min<double>(shape.groups, tokens));  // fewer tokens load fewer experts
    tokens /= work.experts;
  }
  work.in = element_bytes(query.dtype);
  work.step_k = work.in >= 1 ? kStepBytes / std::floor(work.in) : 2 * kStepBytes;
  // Results of 8- and 4-bit products leave in BF16.
  work.out = is_weight_gradient(query.kind) ? kAccumulateBytes : std::max(2.0, work.in);
  work.split = work.in >= 2 && work.experts == 1;
  return work;
}

double blocks_of(double size, double block) {
  return std::ceil(size / block);
}

double overhead_cycles(const Architecture& architecture, double element) {
  if (element >= 2) return architecture.overhead_16bit;
  return element >= 1 ? architecture.overhead_8bit : architecture.overhead_4bit;
}

// The tiles of one choice of tile height: how many there are in a column, over all experts, each expert's
// rows rounded up on their own.
double row_blocks(const GemmWork& work, double block, bool rows_are_m) {
  if (!rows_are_m || work.rows.empty()) return work.experts * blocks_of(work.m, block);
  return std::accumulate(work.rows.begin(), work.rows.end(), 0.0,
                         [&](double sum, std::int32_t rows) { return sum + blocks_of(rows, block); });
}

struct Tile {
  double m = 0, n = 0;
  double splits = 1;  // of k, each on a core of its own
  double count = 0;   // over the whole output, splits included
};

class Waves {
 public:
  Waves(const Engine& engine, const CostQuery& query, const GemmWork& work, Clocks clocks) : work_(work) {
    const Architecture& a = *engine.architecture;
    cores_ = std::clamp(query.cores, 1, cores_of_chip(engine.chip, query.kind));
    const double pace = clocks == Clocks::kSustained ? a.sustained : 1.0;
    core_flops_ = engine.core_flops(query.dtype) * pace;
    overhead_ = overhead_cycles(a, work.in) / (engine.clock * pace);
    least_step_ = a.load_latency / a.stages / engine.clock;
    store_rate_ = engine.memory_rate * a.store_share;
  }

  double cores() const { return cores_; }

  double seconds(const Tile& tile) const {
    const double steps = std::ceil(work_.k / work_.step_k / tile.splits);
    const double products = 2 * tile.m * tile.n * work_.step_k;
    const double step = std::max(products / core_flops_ + overhead_, least_step_);
    // FP32 partial sums of a split tile are written, then read and added.
    const double out = tile.splits > 1 ? 2 * kAccumulateBytes : work_.out;
    const double store = tile.m * tile.n * out * std::min(cores_, tile.count) / store_rate_;
    return std::ceil(tile.count / cores_) * (steps * step + store);
  }

 private:
  const GemmWork& work_;
  double cores_ = 1;
  double core_flops_ = 0, overhead_ = 0, least_step_ = 0, store_rate_ = 0;
};

// Full tiles once they fill the cores; before that the tile (and cut of k) that ends first, as the libraries
// choose. Both are monotone in every size, and the full tile is among the candidates, so that the whole is.
double best_tile_seconds(const Waves& waves, const Architecture& architecture, const GemmWork& work,
                         bool rows_are_m) {
  const double full_m = architecture.max_block_m, full_n = architecture.max_block_n;
  const Tile full{full_m, full_n, 1, row_blocks(work, full_m, rows_are_m) * blocks_of(work.n, full_n)};
  double best = waves.seconds(full);
  if (full.count >= waves.cores()) return best;
  for (double m = 64; m <= full_m; m *= 2) {
    const double column = row_blocks(work, m, rows_are_m);
    for (double n = 16; n <= full_n; n *= 2)
      for (double splits = 1; splits <= (work.split ? 8 : 1); splits *= 2)
        best = std::min(best, waves.seconds({m, n, splits, column * blocks_of(work.n, n) * splits}));
  }
  return best;
}

// Device-memory traffic. Operands that fit in half of the cache are read once. Larger ones are read anew by
// every wave, whose tiles form a square block of the output.
double traffic(const Engine& engine, const CostQuery& query, const GemmWork& work) {
  const double least = least_bytes(query);
  const double elements = work.m * work.n * work.experts;
  const double operands = least - elements * work.out;
  if (engine.chip.l2.value > 0 && operands <= engine.chip.l2.value / 2) return least;
  const double cores = std::clamp(query.cores, 1, cores_of_chip(engine.chip, query.kind));
  const double block = engine.architecture->max_block_m * engine.architecture->max_block_n;
  const double waves = std::ceil(elements / (cores * block));
  const double reread = waves * 2 * std::sqrt(cores * block) * work.k * work.in;
  return std::max(least, elements * work.out + reread);
}

}  // namespace

Estimate gemm_estimate(const Engine& engine, const CostQuery& query, Clocks clocks) {
  const GemmWork work = work_of(query);
  const Waves waves(engine, query, work, clocks);
  const double bytes = traffic(engine, query, work);
  const double compute =
      best_tile_seconds(waves, *engine.architecture, work, query.kind != OpKind::kGroupedGemmWgrad);
  const double prologue = engine.architecture->prologue / engine.clock;
  return {prologue + std::max(compute, bytes / engine.memory_rate), bytes};
}

}  // namespace moebius
