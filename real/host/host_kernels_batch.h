// Attention over a paged cache and the maps of absorbed latent attention, on the CPU.
#pragma once

#include <cstdint>
#include <span>

#include "workloads/schedule/batch.h"

namespace moebius {

// The first `columns` of a row of the cache are the keys of kv_heads heads, then their values; with shared
// values they are the keys alone, whose first v_dim columns are the values (one latent for both).
struct PagedShape {
  std::int64_t heads = 1, kv_heads = 1, head_dim = 0, v_dim = 0, window = 0;
  std::int64_t columns = 0, cache_columns = 0;
  double scale = 1;         // of the scores
  std::int64_t chosen = 0;  // keys that a query chooses; 0: it sees all

  bool shared_values() const { return columns == kv_heads * head_dim; }
  std::int64_t value_column(std::int64_t kv_head) const {
    return shared_values() ? kv_head * head_dim : kv_heads * head_dim + kv_head * v_dim;
  }
};

// q[batch rows, heads*head_dim], cache[slots, cache_columns] -> o[batch rows, heads*v_dim]; a query at
// position p of its sequence sees the keys 0..p, or the last `window` of them, or those at chosen[batch rows,
// shape.chosen], -1 for none. CHECKs the sizes.
template <class Real>
void paged_attention(const PagedShape& shape, const Batch& batch, std::span<const Real> q,
                     std::span<const Real> cache, std::span<const Real> chosen, std::span<Real> o);

// See kIndexScores and kTopKeys (models/op_kind.h).
struct IndexShape {
  std::int64_t heads = 1, head_dim = 0, cache_columns = 0, columns = 0;
};
template <class Real>
void index_scores(const IndexShape& shape, const Batch& batch, std::span<const Real> q,
                  std::span<const Real> cache, std::span<const Real> weights, std::span<Real> scores);
template <class Real>
void top_keys(std::int64_t count, const Batch& batch, std::int64_t columns, std::span<const Real> scores,
              std::span<Real> chosen);

// See kAbsorbQueries and kAbsorbedValues (models/op_kind.h).
struct AbsorbShape {
  std::int64_t heads = 1, nope = 0, rope = 0, v_dim = 0, latent = 0;
};
template <class Real>
void absorb_queries(const AbsorbShape& shape, std::span<const Real> q, std::span<const Real> map,
                    std::span<Real> wide);
template <class Real>
void absorbed_values(const AbsorbShape& shape, std::span<const Real> x, std::span<const Real> map,
                     std::span<Real> y);

}  // namespace moebius
