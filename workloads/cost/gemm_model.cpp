// A GEMM as the libraries run it: the output cut into tiles, one tile a core, wave after wave; the tile is
// the one that ends first. A last wave with one tile costs as much as a full one: that is the staircase of
// measured kernels.
//
//   time = floor + max(latency + waves * (steps * step + store), memory) / clock at the power limit
//   step = max(products and their preparation, operands / L2 rate, latency * operands / operands in flight)
//
// a step being 128 bytes of k (Architecture says what each constant is).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/layer_math.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/power.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr double kStepBytes = 128;  // of k that one step of the loop consumes
constexpr double kLeastSteps = 4;   // of a part of a cut k: shorter ones are not worth the sum at the end
constexpr double kMostPartsOfK = 16;
// Memory streams at its full rate when the requests of all cores are in flight and spread over its channels:
// filling and draining takes some round trips. From GEMMs of one to 500 MB of weights (AIConfigurator, A100
// to GB300: 2 to 8 us more than bytes / rate, more where the latency is long).
constexpr double kTripsToFill = 8;
// Of the energy of a product: what does not shrink with its operands. H200 at its limit of 700 W computes 690
// TFLOP/s in BF16 and 1,100 in FP8, B200 at 1000 W 1,490, 2,200 and, in FP4, 3,200 to 4,300 (the same
// tables).
constexpr double kFixedEnergy = 0.25;

// Under continuous load the clock stays below that of a short measurement even where a kernel alone would not
// draw the limit: the power is that of the mix. The FP8 GEMM 36864 x 7168 falls from 0.735 of the peak in 1.5
// ms to 0.681 in 13 ms (AIConfigurator, H100).
constexpr double kContinuousClock = 0.93;

// Kernels for weights of fewer bits than the operands beside them (Marlin, the generated ones of
// TensorRT-LLM) come in tiles of 16 rows on: they were written for few tokens.
constexpr double kLeastRowsOfLowerWeights = 16;
// Tensor units that scale blocks themselves take lower weights as they are beside operands of 8 bits, here
// with their share of a scale. Else the general lanes decode them first.
constexpr double kMostBytesOfScaled = 1.25;

// Of k that share a scale of MX formats.
constexpr double kMicroBlock = 32;

// How often general lanes take a partial sum of a step of `step_k` out of the tensor unit, scale it and add
// it to the result: for each scale along k, a step of FP8 being one block of 128. With one scale a row or
// tensor the finished sum is scaled once, which is nothing beside k of thousands.
double scaled_sums(const Architecture& architecture, DType executed, ProductScales scales, double step_k) {
  if (executed != DType::kFp8 || architecture.scaling_lanes <= 0) return 0;
  switch (scales) {
    case ProductScales::kBlock:
      return 1;
    case ProductScales::kWhole:
      return 0;
    case ProductScales::kMicro:
      return architecture.micro_scales ? 0 : step_k / kMicroBlock;
  }
  return 0;
}

struct GemmWork {
  std::span<const std::int32_t> rows;  // of each expert, when known
  double m = 0, n = 0, k = 0;          // of one expert
  double experts = 1;
  double in = 0, kept = 0, out = 0;  // bytes of an element of x, W and y, its share of scales included
  double step_k = 64;                // elements of k in one step

  bool lower_weights() const { return kept < in; }
};

bool adds_to_result(const CostQuery& query) {
  return query.kind == OpKind::kGroupedGemmWgrad ||
         (query.kind == OpKind::kGemmWgrad && query.shape.groups == 0);
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
  work.kept = element_bytes(stored_dtype(query));
  work.step_k = work.in >= 1 ? kStepBytes / std::floor(work.in) : 2 * kStepBytes;
  // Results of 8- and 4-bit products leave in BF16.
  work.out = adds_to_result(query) ? 2 * element_bytes(query.summed) : std::max(2.0, work.in);
  return work;
}

double blocks_of(double size, double block) {
  return std::ceil(size / block);
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
  double count = 0;  // over the whole output
  double parts = 1;  // that its k is cut into
};

// The loop over k of one tile on one core, and how tiles share the cores.
class Loop {
 public:
  Loop(const Engine& engine, const CostQuery& query, const GemmWork& work, Clocks clocks, double cores)
      : work_(work), asynchronous_(engine.architecture->asynchronous), cores_(cores) {
    const Architecture& a = *engine.architecture;
    const DType executed = engine.executed[static_cast<std::size_t>(query.dtype)];
    const double pace = clocks == Clocks::kSustained ? kContinuousClock : 1.0;
    const double clock = engine.clock * pace;
    seconds_of_product_ = 2 * work.step_k / (engine.core_flops(query.dtype) * pace);
    if (const double sums = scaled_sums(a, executed, query.scales, work.step_k); sums > 0)
      seconds_of_product_ += sums / (a.scaling_lanes * clock);
    preparation_ = a.step_cycles / clock;
    const bool as_they_are = a.scaling_lanes == 0 && work.in <= kMostBytesOfScaled;
    if (work.lower_weights() && !as_they_are && a.decoded > 0)
      seconds_of_decoding_ = work.step_k / (a.decoded * clock);
    seconds_on_wires_ = 1 / (a.l2_rate * a.multicast * clock);
    seconds_in_flight_ = a.memory_latency / a.operand_memory;
    store_rate_ = engine.memory_rate;
    latency_ = a.memory_latency;
    row_step_ = a.row_step;
    cuts_k_ = a.tiles[static_cast<std::size_t>(operand_width(executed))].cuts_k && work.experts == 1;
    steps_ = std::ceil(work.k / work.step_k);
  }

  double cores() const { return cores_; }

  // The parts of a tile are summed up in the end, which takes one more trip.
  double seconds(const Tile& tile) const {
    const double waves = std::ceil(tile.count * tile.parts / cores_);
    const double steps = tile.parts > 1 ? steps_of_part(tile.parts) : steps_;
    return (tile.parts > 1 ? 2 : 1) * latency_ + waves * (steps * step_of(tile) + store_of(tile));
  }

  // With its k cut into as many parts as there are cores for, where that ends earlier.
  Tile cut(const Tile& tile) const {
    if (!cuts_k_ || 2 * tile.count > cores_) return tile;
    Tile cut = tile;
    cut.parts = std::min(kMostPartsOfK, std::floor(cores_ / tile.count));
    return seconds(cut) < seconds(tile) ? cut : tile;
  }

 private:
  double steps_of_part(double parts) const {
    return std::max(std::min(steps_, kLeastSteps), std::ceil(steps_ / parts));
  }

  double step_of(const Tile& tile) const {
    const double products = padded_rows(tile) * tile.n * seconds_of_product_;
    const double compute = (asynchronous_ ? std::max(products, preparation_) : products + preparation_) +
                           std::min(tile.n, work_.n) * seconds_of_decoding_;
    const double held = (tile.m * work_.in + tile.n * work_.kept) * work_.step_k;
    const double loaded =
        (std::min(tile.m, work_.m) * work_.in + std::min(tile.n, work_.n) * work_.kept) * work_.step_k;
    return std::max({compute, held * seconds_in_flight_, loaded * seconds_on_wires_});
  }

  // Of a tile that the rows do not fill: cube units multiply blocks of rows and leave out those without one.
  double padded_rows(const Tile& tile) const {
    if (row_step_ <= 0) return tile.m;
    return std::min(tile.m, std::ceil(work_.m / row_step_) * row_step_);
  }

  // The tiles of a wave end together and are stored together.
  double store_of(const Tile& tile) const {
    return tile.m * tile.n * work_.out * std::min(cores_, tile.count) / store_rate_;
  }

  const GemmWork& work_;
  bool asynchronous_ = false, cuts_k_ = false;
  double cores_ = 1, steps_ = 1, row_step_ = 0;
  double seconds_of_product_ = 0;   // of a row and a column of a step
  double seconds_of_decoding_ = 0;  // of a column of a step
  double preparation_ = 0, seconds_on_wires_ = 0, seconds_in_flight_ = 0, store_rate_ = 1, latency_ = 0;
};

// What fills a core best: twice as wide ones count as one choice more.
Tile full_tile(const TileShapes& shapes, const GemmWork& work, bool rows_are_m) {
  constexpr double kWidth = 128;
  const double n = std::min(kWidth, shapes.most_n);
  return {shapes.most_m, n, row_blocks(work, shapes.most_m, rows_are_m) * blocks_of(work.n, n)};
}

// The most rows that one expert has.
double most_rows(const GemmWork& work) {
  return work.rows.empty() ? work.m : *std::max_element(work.rows.begin(), work.rows.end());
}

// The least height of a tile. Once full tiles fill the cores a lower one pays where it holds all rows.
double least_height(const TileShapes& shapes, const GemmWork& work, bool rows_are_m, bool filled) {
  const double least = work.lower_weights() ? kLeastRowsOfLowerWeights : shapes.least_m;
  if (!filled) return least;
  if (!rows_are_m) return shapes.most_m;
  const bool steps = work.experts == 1 || work.lower_weights() || most_rows(work) <= least;
  double height = steps ? least : shapes.experts_m;
  while (height < shapes.most_m && height < most_rows(work)) height *= 2;
  return height;
}

// Full tiles once they fill the cores; before that the tile (and cut of k) that ends first, as the libraries
// choose. Both are monotone in every size, and the full tile is among the candidates, so that the whole is.
Tile best_tile(const Loop& loop, const TileShapes& shapes, const GemmWork& work, bool rows_are_m) {
  const Tile full = full_tile(shapes, work, rows_are_m);
  const bool filled = full.count >= loop.cores();
  Tile best = loop.cut(full);
  double least = loop.seconds(best);
  // NOLINTBEGIN(clang-analyzer-security.FloatLoopCounter): doublings are exact
  for (double m = least_height(shapes, work, rows_are_m, filled); m <= shapes.most_m; m *= 2) {
    const double column = row_blocks(work, m, rows_are_m);
    for (double n = filled ? full.n : shapes.least_n; n <= shapes.most_n; n *= 2) {
      const Tile tile = loop.cut({m, n, column * blocks_of(work.n, n)});
      if (loop.seconds(tile) > least) continue;  // of equal ones the larger: it loads less
      best = tile;
      least = loop.seconds(tile);
    }
  }
  // NOLINTEND(clang-analyzer-security.FloatLoopCounter)
  return best;
}

// Device-memory traffic. Operands that fit in half of the cache are read once. Larger ones are read anew by
// every wave, whose tiles form a square block of the output.
double traffic(const Engine& engine, const CostQuery& query, const GemmWork& work, double tile_area) {
  const double least = least_bytes(query);
  const double elements = work.m * work.n * work.experts;
  const double operands = least - elements * work.out;
  if (engine.chip.l2.value > 0 && operands <= engine.chip.l2.value / 2) return least;
  const double block = std::sqrt(held_cores(engine, query) * tile_area);
  return std::max(least, elements * work.out + elements / block * work.k * (work.in + work.kept));
}

double memory_seconds(const Engine& engine, double bytes) {
  const double full_rate = bytes / engine.memory_rate;
  const double filling = kTripsToFill * engine.architecture->memory_latency;
  return full_rate + filling * full_rate / (filling + full_rate);
}

}  // namespace

double drawn_watts(const Engine& engine, const CostQuery& query, double flops, double seconds) {
  const double gigahertz = engine.product_clock / 1e9;
  const double bytes = std::min(
      2.0, std::floor(2 * element_bytes(engine.executed[static_cast<std::size_t>(query.dtype)])) / 2);
  const double share = kFixedEnergy + (1 - kFixedEnergy) * bytes / 2;
  return flops * engine.architecture->energy * gigahertz * gigahertz * share / seconds;
}

namespace {

// At the power limit the clock falls until the products take what the board has for them. An operation costs
// the clock's square (the voltage follows it), so that the power goes with its cube.
double limited_seconds(const Engine& engine, double drawn, double seconds) {
  const double watts = kShareOfProducts * engine.chip.power.value;
  return drawn > watts ? seconds * std::cbrt(drawn / watts) : seconds;
}

}  // namespace

Estimate gemm_estimate(const Engine& engine, const CostQuery& query, Clocks clocks) {
  const GemmWork work = work_of(query);
  const double held = held_cores(engine, query);
  const Loop loop(engine, query, work, clocks, held);
  const Loop chosen(engine, query, work, clocks,
                    query.for_whole_chip ? cores_of_chip(engine.chip, query.kind) : held);
  const DType executed = engine.executed[static_cast<std::size_t>(query.dtype)];
  TileShapes shapes = engine.architecture->tiles[static_cast<std::size_t>(operand_width(executed))];
  if (is_grouped(query.kind)) shapes.most_m = shapes.most_experts_m;
  if (shapes.most_scaled_n > 0 && scaled_sums(*engine.architecture, executed, query.scales, work.step_k) > 0)
    shapes.most_n = shapes.most_scaled_n;
  const bool rows_are_m = query.kind != OpKind::kGroupedGemmWgrad;
  const double bytes = traffic(engine, query, work, shapes.most_m * std::min(shapes.most_n, 256.0));
  double busy =
      std::max(loop.seconds(best_tile(chosen, shapes, work, rows_are_m)), memory_seconds(engine, bytes));
  const bool limited = clocks == Clocks::kSustained && engine.chip.power.value > 0;
  if (limited) {
    const double flops = 2 * work.experts * work.m * work.n * work.k;
    busy = limited_seconds(engine, drawn_watts(engine, query, flops, busy), busy);
  }
  return {engine.chip.kernel_floor.seconds() + busy, bytes};
}

}  // namespace moebius
