// Fused attention (FlashAttention: Dao 2022, Shah 2024; split keys: Flash-Decoding 2023). Tiles of query rows
// pass over blocks of keys: two products on the tensor unit and an exponential a score between them, on units
// that give few of those in a cycle. Causal tiles differ in length and are dealt out longest first. Where
// tiles are too few for the cores (decode), the keys are cut into parts and a second kernel merges them.
#include <algorithm>
#include <cmath>

#include "models/layer_math.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr double kTileRows = 128, kLeastRows = 64;  // of queries that pass over the keys together
constexpr double kBlockKeys = 128;                  // that a tile takes at a time; a part has no fewer
constexpr double kMostPartsOfKeys = 128;
constexpr double kTileSeconds = 2.2e-6;  // a further tile on a core: two trips to memory, barriers, stores
constexpr double kTail = 0.5;            // of the longest tile: how far the cores' ends lie apart
// Seconds of a score in which its exponential is computed, or waits on its way between cube and vector cores
// that stand apart, while the tensor unit stands still.
double exponential_seconds(const Engine& engine) {
  const double rate = engine.architecture->exponentials;
  return rate > 0 ? 1 / (rate * engine.clock) : 0;
}

// What the tiles are and how far they go.
struct Tiles {
  double height = 0;  // rows, padded
  double sequences = 1;
  double of_sequence = 1;  // tiles of one sequence, over its heads
  double keys = 0;         // that the tiles of all sequences pass over, mean over the tiles of a sequence
  double longest = 0;      // keys of the longest tile
};

// Keys that a row sees of a sequence of `kv`, mean over its rows.
double seen_keys(const Shape& shape, int window, double queries, double kv) {
  Shape one = shape;
  one.groups = 1;
  one.window = window;
  one.m = static_cast<std::int64_t>(queries);
  one.kv = static_cast<std::int64_t>(kv);
  return attention_pairs(one) / queries;
}

// Keys that a tile passes over: beside those that its rows see, half of the last block, and with a window
// what only its other rows see, but never more than without one.
double keys_of_tile(const Shape& shape, double queries, double kv) {
  const double vain = queries > 1 ? kBlockKeys / 2 : 0;
  double keys = seen_keys(shape, 0, queries, kv) + vain;
  if (shape.window > 0)
    keys = std::min(keys, seen_keys(shape, shape.window, queries, kv) + vain + (queries > 1 ? kTileRows : 0));
  return std::max(kLeastRows, keys);
}

double longest_tile(const Shape& shape, double queries, double kv) {
  const double window = shape.window > 0 ? shape.window + std::min(queries, kTileRows) - 1 : kv;
  return std::max(kLeastRows, std::min(kv, window));
}

double queries_of(const Shape& shape) {
  return std::max(1.0, static_cast<double>(shape.m) / std::max(1, shape.groups));
}

// Packed: all heads that share a KV head stand in one tile; else the positions of one head.
Tiles tiles_of(const CostQuery& query, bool packed) {
  const Shape shape = loaded_shape(query);
  Tiles tiles{.sequences = static_cast<double>(std::max(1, shape.groups))};
  const double queries = queries_of(shape);
  const double heads = std::max(1, shape.heads), kv_heads = std::max(1, shape.kv_heads);
  const double rows = packed ? queries * std::max(1.0, heads / kv_heads) : queries;
  tiles.height = rows <= kLeastRows ? kLeastRows : kTileRows;
  tiles.of_sequence = (packed ? kv_heads : heads) * std::ceil(rows / tiles.height);
  if (query.rows.empty()) {
    const double kv = std::max(queries, static_cast<double>(shape.kv));
    tiles.keys = tiles.sequences * keys_of_tile(shape, queries, kv);
    tiles.longest = longest_tile(shape, queries, kv);
  }
  for (const std::int32_t keys : query.rows) {
    const double kv = std::max(queries, static_cast<double>(keys));
    tiles.keys += keys_of_tile(shape, queries, kv);
    tiles.longest = std::max(tiles.longest, longest_tile(shape, queries, kv));
  }
  return tiles;
}

// Kernels whose tensor unit fetches its operands from shared memory multiply in the format of the cache,
// where the chip is faster in it. Where threads hand the operands over in registers, they widen the cache's
// there: prefill on L40S and RTX PRO 6000 takes as long with an FP8 cache as with one of BF16.
double core_flops_of(const Engine& engine, const CostQuery& query) {
  if (!engine.architecture->asynchronous) return engine.core_flops(query.dtype);
  return std::max(engine.core_flops(query.dtype), engine.core_flops(stored_dtype(query)));
}

// How long the tiles take: on each core its own, together what the chip's memory gives.
class Passes {
 public:
  Passes(const Engine& engine, const CostQuery& query, bool packed)
      : engine_(engine), tiles_(tiles_of(query, packed)) {
    const Architecture& a = *engine.architecture;
    const Shape& shape = query.shape;
    cores_ = held_cores(engine, query);
    products_ = op_products(query) / (core_flops_of(engine, query) * a.attention);
    exponentials_ = exponential_seconds(engine);
    bytes_ = least_bytes(query);
    core_rate_ = a.core_stream * engine.clock;
    chip_rate_ = is_found_in_l2(engine.chip, query) ? cores_ * core_rate_ : stream_rate(engine, cores_);
    key_bytes_ = (is_absorbed_latent(shape) ? 0 : shape.v_dim) + shape.head_dim;
    key_bytes_ *= element_bytes(stored_dtype(query));
    queries_bytes_ = tiles_.height * (shape.head_dim + shape.v_dim) * element_bytes(query.dtype);
    row_bytes_ = static_cast<double>(loaded_shape(query).m) * shape.heads * (shape.v_dim + 1) * 4;
  }

  double count() const { return tiles_.sequences * tiles_.of_sequence; }
  double cores() const { return cores_; }
  double bytes() const { return bytes_; }

  // With the keys cut into so many parts (of the longest sequence; the others have parts of that length).
  double seconds(double parts) const {
    const double longest =
        score_seconds(std::max(tiles_.longest / parts, std::min(kBlockKeys, tiles_.longest)));
    const double count_of_parts =
        std::clamp(tiles_.keys / tiles_.longest * parts, tiles_.sequences, tiles_.sequences * parts);
    const double waves = tiles_.of_sequence * count_of_parts / cores_;
    const double all = tiles_.of_sequence * score_seconds(tiles_.keys) / cores_;
    const double tail = kTail * longest * std::clamp(waves - 1, 0.0, 1.0);
    const double compute = std::max(longest, all + tail);
    const double merged = parts > 1 ? 2 * parts * row_bytes_ : 0;
    const double memory = std::max((bytes_ + merged) / chip_rate_,
                                   (queries_bytes_ + key_bytes_ * tiles_.longest / parts) / core_rate_);
    return kTileSeconds * std::max(0.0, waves - 1) + std::max(compute, memory) +
           (parts > 1 ? engine_.chip.kernel_floor.seconds() : 0);
  }

 private:
  // Of one query and one key, both products.
  static double op_products(const CostQuery& query) {
    return 2.0 * (query.shape.head_dim + query.shape.v_dim);
  }

  double score_seconds(double keys) const { return tiles_.height * keys * (products_ + exponentials_); }

  const Engine& engine_;
  Tiles tiles_;
  double cores_ = 1, products_ = 0, exponentials_ = 0;  // seconds of a score
  double bytes_ = 0, row_bytes_ = 0;                    // of all; of the parts' results
  double key_bytes_ = 0, queries_bytes_ = 0;            // of one key; of a tile
  double core_rate_ = 0, chip_rate_ = 0;                // bytes per second
};

// The number of parts that ends first, of the powers of two until the cores are full.
double best_parts_seconds(const Passes& passes) {
  double best = passes.seconds(1);
  for (double parts = 2; parts <= kMostPartsOfKeys && passes.count() * parts < 2 * passes.cores(); parts *= 2)
    best = std::min(best, passes.seconds(parts));
  return best;
}

// The passes that prepare and finish attention's backward: do and o are read and the FP32 dq cleared before;
// dq is read and written in the operands' type after.
double backward_pass_bytes(const Shape& shape) {
  const double rows = static_cast<double>(shape.m) * shape.heads;
  const double before = rows * (2.0 * shape.v_dim * 2 + 4.0 * shape.head_dim);
  const double after = rows * shape.head_dim * (4.0 + 2.0);
  return before + after;
}

// Five products over the scores and the exponentials again; whole rows of keys, no parts. Operands of these
// products are written to shared memory between them, whose rate has not grown with that of the tensor units:
// of the rate forward they reach attention_back. On H100, heads of 128, 322 of 370 TFLOP/s
// (FlashAttention-2), 516 of 595 (cuDNN), 561 of 648 (FlashAttention-3): Shah et al. 2024, figures 5 and 6.
// On B200 1,000 of 1,460 with the exponentials, heads of 192 and 128 (dense attention of FlashMLA).
Estimate backward_estimate(const Engine& engine, const CostQuery& query) {
  const Architecture& a = *engine.architecture;
  const Shape shape = loaded_shape(query);
  const Tiles tiles = tiles_of(query, queries_of(shape) < kLeastRows);
  const double count = tiles.sequences * tiles.of_sequence, cores = held_cores(engine, query);
  const double rows = std::max(1.0, static_cast<double>(shape.m) / tiles.sequences * shape.heads);
  const double padding = tiles.of_sequence * tiles.height / rows;
  const double pairs = attention_pairs(shape) * shape.heads * padding;
  const double products = op_flops(query.kind, shape).value * padding / engine.core_flops(query.dtype);
  // Cube and vector cores that stand apart hand over scores and their gradients: twice what goes forward.
  const double handed = engine.chip.general_cores > 0 ? 2 : 1;
  const double work =
      products / (a.attention * a.attention_back) + handed * pairs * exponential_seconds(engine);
  const double waves = std::max(1.0, count / cores + (count > cores ? kTail / 2 : 0.0));
  const double least = least_bytes(query), passes = backward_pass_bytes(shape);
  const double rate = stream_rate(engine, cores), floor = engine.chip.kernel_floor.seconds();
  return {3 * floor + std::max(work / count * waves, least / rate) + passes / rate, least + passes};
}

}  // namespace

Estimate attention_estimate(const Engine& engine, const CostQuery& query) {
  if (query.kind == OpKind::kAttentionGrad) return backward_estimate(engine, query);
  const double latency = engine.architecture->attention_latency / engine.clock;
  const double queries = queries_of(loaded_shape(query));
  // One query is decoding, which packs; a tile full of them does not. Between them a kernel may do either.
  const Passes passes(engine, query, queries < kLeastRows);
  double seconds = best_parts_seconds(passes);
  if (queries > 1 && queries < kLeastRows)
    seconds = std::min(seconds, best_parts_seconds(Passes(engine, query, false)));
  return {engine.chip.kernel_floor.seconds() + latency + seconds, passes.bytes()};
}

}  // namespace moebius
