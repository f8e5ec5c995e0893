// The gated delta rule as serving frameworks run it: flash-linear-attention's kernels (FLA, fla/ops/
// gated_delta_rule and fla/ops/common), of which SGLang and vLLM have copies.
//
// Row by row (a token that decodes) it is one kernel that streams the states. In chunks of 64 rows it is nine
// kernels with tensors in memory between them: gates; lengths of queries and of keys; sums of the gates
// within a chunk; k k' of each chunk; the inverse of the triangle that it leaves; w and u; the states, chunk
// behind chunk; the results. All but the states work on all chunks at once. A state waits for the one before
// it:
//
//   time = 9 floors + time(chunks at once) + max(time(states), chunks of the longest sequence * step)
//   time(kernels) = bytes / rate + FLOPs / (cores * FLOPs per cycle * clock)
//
// Bytes per row and value head, of K key and V value columns, C rows a chunk, BF16 but for k k' (FP32);
// queries and keys count once for the value heads that share them:
//   chunks at once: k k' 2K in, 4C out; inverse 4C in, 2C out; w and u 2K + 2V + 2C in, 2K + 2V out; results
//   4K + 2V and the state before the chunk, 2KV/C, in, 2V out
//   states: 4K + 2V in, 2KV/C + 2V out
//
// Two constants, from kernels alone: FLA's columns of the tables in flashinfer-ai/flashinfer, pull requests
// 3866 and 3788 (H100), 3902 (GB200), 4078 (B300), 3659 (RTX PRO 6000), the heads of Qwen3.5-397B on 1 and 8
// ranks, 1 to 16 sequences of 1,024 to 65,536 tokens. Ranges: 8 sequences of 8,192 give 600 to 870 FLOPs a
// cycle and core, one sequence of 65,536 gives 2,100 to 2,600 cycles a step.
#include <algorithm>
#include <numeric>

#include "models/layer_math.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/host_calls.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr double kFlopsPerCycle = 780;  // that a core reaches in products of 64 rows
constexpr double kStepCycles = 2200;    // from a state to the one behind the next chunk

struct Chunks {
  double all = 0, longest = 0;  // of all sequences, of the longest one
};

double chunks_of(std::int64_t rows) {
  return static_cast<double>((rows + kDeltaChunk - 1) / kDeltaChunk);
}

Chunks chunks_of(const CostQuery& query) {
  Chunks chunks;
  for (const std::int32_t rows : query.rows) {
    chunks.all += chunks_of(rows);
    chunks.longest = std::max(chunks.longest, chunks_of(rows));
  }
  if (!query.rows.empty()) return chunks;
  const int sequences = std::max(1, query.shape.groups);
  chunks.longest = chunks_of((query.shape.m + sequences - 1) / sequences);
  return {sequences * chunks.longest, chunks.longest};
}

// Of a row and value head.
struct Work {
  double bytes = 0, flops = 0;
};

Work at_once(const Shape& s) {
  const double c = kDeltaChunk, k = s.head_dim, v = s.v_dim;
  const double shared = 2 * k * s.kv_heads / s.heads;  // a row of queries or of keys
  const double states = 2 * k * v / c;
  const double triangles = (4 + 4 + 2 + 2) * c;
  return {triangles + 4 * shared + 2 * k + 8 * v + states, 2 * c * (3 * k + 2 * v) + 2 * k * v};
}

Work of_states(const Shape& s) {
  const double k = s.head_dim, v = s.v_dim;
  const double shared = 2 * k * s.kv_heads / s.heads;
  return {shared + 2 * k + 4 * v + 2 * k * v / kDeltaChunk, 4 * k * v};
}

double seconds_of(const Engine& engine, double cores, const Work& work, double rows) {
  const double core_rate = kFlopsPerCycle * engine.clock;
  return rows * (work.bytes / stream_rate(engine, cores) + work.flops / (cores * core_rate));
}

}  // namespace

Estimate delta_rule_estimate(const Engine& engine, const CostQuery& query) {
  const Shape shape = loaded_shape(query);
  const double least = least_bytes(query);
  if (!is_chunked(shape)) return stream_estimate(engine, query, least);
  const Chunks chunks = chunks_of(query);
  const double rows = chunks.all * kDeltaChunk * shape.heads;
  const Work apart = at_once(shape), states = of_states(shape);
  const double cores = held_cores(engine, query);
  const double behind =
      std::max(seconds_of(engine, cores, states, rows), chunks.longest * kStepCycles / engine.clock);
  return {kChunkedDeltaKernels * engine.chip.kernel_floor.seconds() + seconds_of(engine, cores, apart, rows) +
              behind,
          std::max(least, rows * (apart.bytes + states.bytes))};
}

}  // namespace moebius
