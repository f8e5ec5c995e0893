// Serving on a device: paged cache, decode attention over it, absorbed maps, greedy sampling. A team for each
// query, head and part of the keys; plain arithmetic, no tensor cores.
#include "real/cuda/kernels.h"
#include "real/cuda/kernels_batch.h"
#include "real/cuda/launch.cuh"

namespace moebius::cuda {
namespace {

constexpr std::int64_t kChunk = 256;  // keys at a time
static_assert(kChunk + 2 * kLargestHead <= kScratch);

struct Tokens {
  BatchTokens b;
  Operand tokens;
  MOEBIUS_DEVICE void operator()(std::int64_t row) const {
    const std::int32_t place = b.place[row];
    store(tokens, row, place < 0 ? static_cast<float>(b.prompt[row]) : load(b.generated, place));
  }
};

struct Append {
  Operand x;
  const std::int32_t* slots;
  std::int64_t first;
  Operand cache;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t row = index / x.columns, column = index % x.columns;
    store(cache, slots[row] * cache.columns + first + column, load(x, row, column));
  }
};

struct ReadBack {
  Operand cache;
  const std::int32_t* slots;
  std::int64_t first;
  Operand part;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t row = index / part.columns, column = index % part.columns;
    store(part, index, load(cache, slots[row], first + column));
  }
};

// One head of one query and one part of its keys.
struct PartOfKeys {
  PagedAttention a;
  std::int64_t parts;
  Operand partial;

  // Where in the sequence the i-th key stands that the query sees.
  MOEBIUS_DEVICE std::int64_t key_at(std::int64_t row, std::int64_t i) const {
    return a.top > 0 ? static_cast<std::int64_t>(load(a.chosen, row, i)) : i;
  }
  MOEBIUS_DEVICE std::int64_t last_key_of(std::int64_t row) const {
    const std::int64_t all = a.positions[row] + 1;
    return a.top > 0 && a.top < all ? a.top : all;
  }
  MOEBIUS_DEVICE float score(const float* q, std::int64_t row, std::int64_t key, std::int64_t column) const {
    const std::int64_t slot = a.slot(row, key_at(row, key));
    float sum = 0;
    for (std::int64_t d = 0; d < a.head_dim; ++d) sum += q[d] * load(a.cache, slot, column + d);
    return sum * a.scale;
  }

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t index) const {
    const std::int64_t part = index % parts, row = index / parts / a.heads, head = index / parts % a.heads;
    const std::int64_t kv_head = head * a.kv_heads / a.heads, last_key = last_key_of(row);
    const std::int64_t seen = a.window > 0 && last_key > a.window ? last_key - a.window : 0;
    const std::int64_t begin = part * PagedAttention::kPartKeys,
                       whole_end = begin + PagedAttention::kPartKeys;
    const std::int64_t end = whole_end < last_key ? whole_end : last_key;
    float *p = team.scratch(), *q = p + kChunk, *sums = q + a.head_dim;
    team.each(a.head_dim, [&](std::int64_t d) { q[d] = load(a.q, row, head * a.head_dim + d); });
    team.each(a.v_dim, [&](std::int64_t d) { sums[d] = 0; });
    team.sync();
    float maximum = -INFINITY, weight = 0;
    for (std::int64_t first = begin < seen ? seen : begin; first < end; first += kChunk) {
      const std::int64_t count = end - first < kChunk ? end - first : kChunk;
      team.each(count, [&](std::int64_t j) { p[j] = score(q, row, first + j, kv_head * a.head_dim); });
      team.sync();
      const float higher = fmaxf(maximum, team.max(count, [&](std::int64_t j) { return p[j]; }));
      const float shrink = expf(maximum - higher);  // 0 at first
      team.sync();
      team.each(count, [&](std::int64_t j) { p[j] = expf(p[j] - higher); });
      team.sync();
      weight = weight * shrink + team.sum<float>(count, [&](std::int64_t j) { return p[j]; });
      team.each(a.v_dim, [&](std::int64_t d) {
        float add = 0;
        for (std::int64_t j = 0; j < count; ++j)
          add += p[j] * load(a.cache, a.slot(row, key_at(row, first + j)), a.value_column(kv_head) + d);
        sums[d] = sums[d] * shrink + add;
      });
      team.sync();
      maximum = higher;
    }
    const std::int64_t at = index * partial.columns;
    team.each(a.v_dim, [&](std::int64_t d) { store(partial, at + d, sums[d]); });
    team.each(1, [&](std::int64_t) {
      store(partial, at + a.v_dim, maximum);
      store(partial, at + a.v_dim + 1, weight);
    });
  }
};

// The parts of a head of a query, in order; parts that it sees nothing of have no weight.
struct MergeParts {
  PagedAttention a;
  std::int64_t parts;
  Operand partial, o;

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t index) const {
    const std::int64_t first = index * parts;
    const auto maximum_of = [&](std::int64_t part) { return load(partial, first + part, a.v_dim); };
    const float highest = team.max(parts, maximum_of);
    const float weight = team.sum<float>(parts, [&](std::int64_t part) {
      return load(partial, first + part, a.v_dim + 1) * expf(maximum_of(part) - highest);
    });
    team.each(a.v_dim, [&](std::int64_t d) {
      float sum = 0;
      for (std::int64_t part = 0; part < parts; ++part)
        sum += load(partial, first + part, d) * expf(maximum_of(part) - highest);
      store(o, index * a.v_dim + d, sum / weight);
    });
  }
};

struct IndexScores {
  PagedAttention a;
  Operand weights, scores;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t key = index % scores.columns, row = index / scores.columns;
    if (key > a.positions[row]) return store(scores, index, 0);
    const std::int64_t slot = a.slot(row, key), column = a.cache.columns - a.head_dim;
    float sum = 0;
    for (std::int64_t head = 0; head < a.heads; ++head) {
      float score = 0;
      for (std::int64_t d = 0; d < a.head_dim; ++d)
        score += load(a.q, row, head * a.head_dim + d) * load(a.cache, slot, column + d);
      sum += load(weights, row, head) * fmaxf(score, 0);
    }
    store(scores, index, sum);
  }
};

// A query's keys: the k-th largest score is found bit by bit, then each of kBlocks runs of keys writes its
// own behind those of the runs before it.
struct TopKeys {
  static constexpr std::int64_t kBlocks = 128;
  static_assert(2 * kBlocks <= kScratch);
  Operand scores;
  const std::int32_t* positions;
  Operand chosen;

  // In the order of the scores.
  MOEBIUS_DEVICE std::uint32_t rank(std::int64_t row, std::int64_t key) const {
    const float score = load(scores, row, key) + 0.0F;  // of the two zeros one
    std::uint32_t bits = 0;
    memcpy(&bits, &score, sizeof bits);
    return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  }

  // The largest rank that at least `count` keys reach.
  MOEBIUS_DEVICE std::uint32_t least_rank(const Team& team, std::int64_t row, std::int64_t keys,
                                          std::int64_t count) const {
    std::uint32_t least = 0;
    for (int bit = 31; bit >= 0; --bit) {
      const std::uint32_t higher = least | (1u << bit);
      const auto reach =
          team.sum<float>(keys, [&](std::int64_t i) { return rank(row, i) >= higher ? 1.0F : 0.0F; });
      if (reach >= static_cast<float>(count)) least = higher;
    }
    return least;
  }

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const std::int64_t keys = positions[row] + 1, count = chosen.columns < keys ? chosen.columns : keys;
    const std::uint32_t least = least_rank(team, row, keys, count);
    const std::int64_t run = (keys + kBlocks - 1) / kBlocks;
    float *above = team.scratch(), *equal = above + kBlocks;
    team.sync();
    team.each(kBlocks, [&](std::int64_t b) {
      above[b] = equal[b] = 0;
      for (std::int64_t i = b * run; i < (b + 1) * run && i < keys; ++i) {
        const std::uint32_t mine = rank(row, i);
        above[b] += mine > least ? 1.0F : 0.0F;
        equal[b] += mine == least ? 1.0F : 0.0F;
      }
    });
    team.sync();
    team.each(kBlocks, [&](std::int64_t b) {
      std::int64_t larger = 0, larger_before = 0, equal_before = 0;
      for (std::int64_t i = 0; i < kBlocks; ++i) {
        larger += static_cast<std::int64_t>(above[i]);
        if (i >= b) continue;
        larger_before += static_cast<std::int64_t>(above[i]);
        equal_before += static_cast<std::int64_t>(equal[i]);
      }
      const std::int64_t wanted = count - larger;  // of the equal ones, the first
      std::int64_t to = larger_before + (equal_before < wanted ? equal_before : wanted);
      for (std::int64_t i = b * run; i < (b + 1) * run && i < keys; ++i) {
        const std::uint32_t mine = rank(row, i);
        if (mine > least || (mine == least && equal_before++ < wanted))
          store(chosen, row * chosen.columns + to++, static_cast<float>(i));
      }
    });
    team.each(chosen.columns - count,
              [&](std::int64_t i) { store(chosen, row * chosen.columns + count + i, -1.0F); });
  }
};

struct AbsorbQueries {
  Absorb s;
  Operand q, map, wide;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t width = s.latent + s.rope, column = index % width;
    const std::int64_t head = index / width % s.heads, row = index / width / s.heads;
    const std::int64_t from = head * (s.nope + s.rope);
    if (column >= s.latent) return store(wide, index, load(q, row, from + s.nope + column - s.latent));
    float sum = 0;
    for (std::int64_t d = 0; d < s.nope; ++d)
      sum += load(q, row, from + d) * load(map, head * (s.nope + s.v_dim) + d, column);
    store(wide, index, sum);
  }
};

struct AbsorbedValues {
  Absorb s;
  Operand x, map, y;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t d = index % s.v_dim, head = index / s.v_dim % s.heads, row = index / s.v_dim / s.heads;
    float sum = 0;
    for (std::int64_t c = 0; c < s.latent; ++c)
      sum += load(x, row, head * s.latent + c) * load(map, head * (s.nope + s.v_dim) + s.nope + d, c);
    store(y, index, sum);
  }
};

struct Largest {
  Operand logits;
  std::int64_t first_id;
  Operand best;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const float largest = team.max(logits.columns, [&](std::int64_t c) { return load(logits, row, c); });
    const float column = -team.max(logits.columns, [&](std::int64_t c) {
      return load(logits, row, c) == largest ? -static_cast<float>(c) : -INFINITY;
    });
    team.each(1, [&](std::int64_t) {
      store(best, row * 2, largest);
      store(best, row * 2 + 1, static_cast<float>(first_id) + column);
    });
  }
};

struct Next {
  Operand best;
  const std::int32_t* place;
  std::int64_t rows;
  Operand generated;
  MOEBIUS_DEVICE void operator()(std::int64_t row) const {
    std::int64_t winner = row;
    for (std::int64_t shard = row + rows; shard < best.rows; shard += rows)
      if (load(best, shard, 0) > load(best, winner, 0)) winner = shard;
    if (place[row] >= 0) store(generated, place[row], load(best, winner, 1));
  }
};

}  // namespace

void batch_tokens(Stream stream, const BatchTokens& rows, const Operand& tokens) {
  launch_elements(stream, tokens.rows, Tokens{rows, tokens});
}

void append_rows(Stream stream, const Operand& x, const std::int32_t* slots, std::int64_t first,
                 const Operand& cache) {
  launch_elements(stream, x.elements(), Append{x, slots, first, cache});
}

void read_rows(Stream stream, const Operand& cache, const std::int32_t* slots, std::int64_t first,
               const Operand& part) {
  launch_elements(stream, part.elements(), ReadBack{cache, slots, first, part});
}

void paged_attention(Stream stream, const PagedAttention& attention, const Operand& partial,
                     const Operand& o) {
  const std::int64_t parts = attention.parts(), count = attention.q.rows * attention.heads;
  launch_teams(stream, count * parts, PartOfKeys{attention, parts, partial});
  launch_teams(stream, count, MergeParts{attention, parts, partial, o});
}

void index_scores(Stream stream, const PagedAttention& of, const Operand& weights, const Operand& scores) {
  launch_elements(stream, scores.elements(), IndexScores{of, weights, scores});
}

void top_keys(Stream stream, const Operand& scores, const std::int32_t* positions, const Operand& chosen) {
  launch_teams(stream, scores.rows, TopKeys{scores, positions, chosen});
}

void absorb_queries(Stream stream, const Absorb& shape, const Operand& q, const Operand& map,
                    const Operand& wide) {
  launch_elements(stream, wide.elements(), AbsorbQueries{shape, q, map, wide});
}

void absorbed_values(Stream stream, const Absorb& shape, const Operand& x, const Operand& map,
                     const Operand& y) {
  launch_elements(stream, y.elements(), AbsorbedValues{shape, x, map, y});
}

void greedy_sample(Stream stream, const Operand& logits, std::int64_t first_id, const Operand& best) {
  launch_teams(stream, logits.rows, Largest{logits, first_id, best});
}

void next_token(Stream stream, const Operand& best, const std::int32_t* place, std::int64_t rows,
                const Operand& generated) {
  launch_elements(stream, rows, Next{best, place, rows, generated});
}

}  // namespace moebius::cuda
