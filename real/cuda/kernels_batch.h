// Kernels of serving: each does to matrices in a device's memory what its namesake does on the CPU
// (real/host/host_kernels_batch.h, real/host/host_compute_batch.cpp). Index arrays stand in the device's
// memory.
#pragma once

#include <cstdint>

#include "real/cuda/device.h"
#include "real/cuda/storage.h"

namespace moebius::cuda {

// tokens[r] = generated[place[r]], or prompt[r] where place[r] is negative.
struct BatchTokens {
  const std::int32_t* prompt = nullptr;
  const std::int32_t* place = nullptr;
  Operand generated;
};
void batch_tokens(Stream stream, const BatchTokens& rows, const Operand& tokens);

// cache[slots[r], first...] = x[r]; the cache has no scales.
void append_rows(Stream stream, const Operand& x, const std::int32_t* slots, std::int64_t first,
                 const Operand& cache);

// part[r] = cache[slots[r], first...], part.columns of them.
void read_rows(Stream stream, const Operand& cache, const std::int32_t* slots, std::int64_t first,
               const Operand& part);

// A query row stands at positions[row] of a sequence whose pages are pages[first_page[row]...].
struct PagedAttention {
  std::int64_t heads = 1, kv_heads = 1, head_dim = 0, v_dim = 0, window = 0, page_tokens = 1;
  std::int64_t longest = 0;  // keys of the longest sequence
  float scale = 1;
  Operand q, cache;
  const std::int32_t* positions = nullptr;
  const std::int32_t* first_page = nullptr;
  const std::int32_t* pages = nullptr;
  std::int64_t columns = 0;  // of the cache's, from the first on
  std::int64_t top = 0;      // keys that a query chooses: chosen[q.rows, top], -1 behind them; 0: it sees all
  Operand chosen = {};

  MOEBIUS_BOTH std::int64_t slot(std::int64_t row, std::int64_t key) const {
    return static_cast<std::int64_t>(pages[first_page[row] + key / page_tokens]) * page_tokens +
           key % page_tokens;
  }
  // Values behind the keys, or their first columns.
  MOEBIUS_BOTH std::int64_t value_column(std::int64_t kv_head) const {
    return columns == kv_heads * head_dim ? kv_head * head_dim : kv_heads * head_dim + kv_head * v_dim;
  }
  // Keys are cut into parts, each a team's, so that few sequences fill the device; results are merged by
  // part.
  static constexpr std::int64_t kPartKeys = 512;
  std::int64_t parts() const { return (longest + kPartKeys - 1) / kPartKeys; }
  std::int64_t partial_columns() const { return v_dim + 2; }  // sums, their maximum and weight
};
// `partial`: [rows * heads * parts, partial_columns] FP32: scratch.
void paged_attention(Stream stream, const PagedAttention& attention, const Operand& partial,
                     const Operand& o);

// Keys are the last head_dim columns of the cache's rows; scores behind the query's own position are 0.
void index_scores(Stream stream, const PagedAttention& of, const Operand& weights, const Operand& scores);
// chosen[rows, k] of scores[rows, .]: ascending positions, -1 behind them; the first of equals.
void top_keys(Stream stream, const Operand& scores, const std::int32_t* positions, const Operand& chosen);

struct Absorb {
  std::int64_t heads = 1, nope = 0, rope = 0, v_dim = 0, latent = 0;
};
void absorb_queries(Stream stream, const Absorb& shape, const Operand& q, const Operand& map,
                    const Operand& wide);
void absorbed_values(Stream stream, const Absorb& shape, const Operand& x, const Operand& map,
                     const Operand& y);

// best[r] = the largest of logits[r] and first_id + its column, the lowest of equals.
void greedy_sample(Stream stream, const Operand& logits, std::int64_t first_id, const Operand& best);
// generated[place[r]] = the id of the largest of best[r], best[r + rows], ...; negative places: nowhere.
void next_token(Stream stream, const Operand& best, const std::int32_t* place, std::int64_t rows,
                const Operand& generated);

}  // namespace moebius::cuda
