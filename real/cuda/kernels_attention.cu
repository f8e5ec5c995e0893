// Causal attention: real/host/host_kernels_attention.h on a device. A team for each query (or key) and head;
// scores of a chunk of keys at a time with a running maximum, so that any length fits. Correct first: no
// tensor cores.
#include <string>

#include "hw/error.h"
#include "real/cuda/kernels.h"
#include "real/cuda/launch.cuh"

namespace moebius::cuda {
namespace {

constexpr std::int64_t kChunk = 256;  // keys at a time
static_assert(2 * kChunk + 4 * kLargestHead <= kScratch);

// One head of one query.
struct Place {
  std::int64_t sequence, i, head, kv_head, row;  // i: query in its sequence; row: in q and o
  MOEBIUS_DEVICE Place(const Attention& a, std::int64_t index)
      : sequence(index / a.heads / a.queries),
        i(index / a.heads % a.queries),
        head(index % a.heads),
        kv_head(head * a.kv_heads / a.heads),
        row(index / a.heads) {}
};

// The product of x, in shared memory, with `width` columns from `first` of a row.
MOEBIUS_DEVICE float dot(const float* x, const Operand& y, std::int64_t row, std::int64_t first,
                         std::int64_t width) {
  float sum = 0;
  for (std::int64_t d = 0; d < width; ++d) sum += x[d] * load(y, row, first + d);
  return sum;
}

MOEBIUS_DEVICE void fetch(const Team& team, const Operand& x, std::int64_t row, std::int64_t first,
                          std::int64_t width, float* to) {
  team.each(width, [&](std::int64_t d) { to[d] = load(x, row, first + d); });
}

struct Forward {
  Attention a;
  Operand o, lse;
  float scale;

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t index) const {
    const Place at(a, index);
    float *p = team.scratch(), *q = p + kChunk, *sums = q + a.head_dim;
    fetch(team, a.q, at.row, at.head * a.head_dim, a.head_dim, q);
    team.each(a.v_dim, [&](std::int64_t d) { sums[d] = 0; });
    team.sync();
    float maximum = -INFINITY, sum = 0;
    const std::int64_t last = a.last_seen(at.i);
    for (std::int64_t first = a.first_seen(at.i); first < last; first += kChunk) {
      const std::int64_t count = last - first < kChunk ? last - first : kChunk;
      team.each(count, [&](std::int64_t j) {
        p[j] = dot(q, a.k, a.key_row(at.sequence, first + j), at.kv_head * a.head_dim, a.head_dim) * scale;
      });
      team.sync();
      const float higher = fmaxf(maximum, team.max(count, [&](std::int64_t j) { return p[j]; }));
      const float shrink = expf(maximum - higher);  // of what was summed under the lower maximum; 0 at first
      team.sync();
      team.each(count, [&](std::int64_t j) { p[j] = expf(p[j] - higher); });
      team.sync();
      sum = sum * shrink + team.sum<float>(count, [&](std::int64_t j) { return p[j]; });
      team.each(a.v_dim, [&](std::int64_t d) {
        float add = 0;
        for (std::int64_t j = 0; j < count; ++j)
          add += p[j] * load(a.v, a.key_row(at.sequence, first + j), at.kv_head * a.v_dim + d);
        sums[d] = sums[d] * shrink + add;
      });
      team.sync();
      maximum = higher;
    }
    team.each(a.v_dim,
              [&](std::int64_t d) { store(o, at.row * o.columns + at.head * a.v_dim + d, sums[d] / sum); });
    team.each(1, [&](std::int64_t) { store(lse, index, maximum + logf(sum)); });
  }
};

// Of each query and head: exp(score - lse), and zero for keys that it does not see.
struct Probabilities {
  Attention a;
  Operand lse, p;
  float scale;

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t index) const {
    const Place at(a, index);
    float* q = team.scratch() + kChunk;
    fetch(team, a.q, at.row, at.head * a.head_dim, a.head_dim, q);
    team.sync();
    const float sum = load(lse, at.row, at.head);
    team.each(a.keys, [&](std::int64_t j) {
      const bool seen = j >= a.first_seen(at.i) && j < a.last_seen(at.i);
      const float score =
          seen ? dot(q, a.k, a.key_row(at.sequence, j), at.kv_head * a.head_dim, a.head_dim) * scale : 0;
      store(p, at.row * p.columns + at.head * a.keys + j, seen ? expf(score - sum) : 0);
    });
  }
};

// D = sum(do * o) of each query and head.
struct Dot {
  Attention a;
  AttentionGrad g;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t index) const {
    const Place at(a, index);
    const double sum = team.sum<double>(a.v_dim, [&](std::int64_t d) {
      const std::int64_t column = at.head * a.v_dim + d;
      return static_cast<double>(load(g.d_o, at.row, column)) * load(g.o, at.row, column);
    });
    team.each(1, [&](std::int64_t) { store(g.dot, index, static_cast<float>(sum)); });
  }
};

// dq = sum over keys of ds * k, with p = exp(score - lse), ds = p * (do*v - D) * scale.
struct QueryGrad {
  Attention a;
  AttentionGrad g;
  float scale;

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t index) const {
    const Place at(a, index);
    float *ds = team.scratch(), *q = ds + kChunk, *d_o = q + a.head_dim, *sums = d_o + a.v_dim;
    fetch(team, a.q, at.row, at.head * a.head_dim, a.head_dim, q);
    fetch(team, g.d_o, at.row, at.head * a.v_dim, a.v_dim, d_o);
    team.each(a.head_dim, [&](std::int64_t d) { sums[d] = 0; });
    const float lse = load(g.lse, index), pull = load(g.dot, index);
    const std::int64_t last = a.last_seen(at.i);
    for (std::int64_t first = a.first_seen(at.i); first < last; first += kChunk) {
      const std::int64_t count = last - first < kChunk ? last - first : kChunk;
      team.sync();
      team.each(count, [&](std::int64_t j) {
        const std::int64_t row = a.key_row(at.sequence, first + j);
        const float p = expf(dot(q, a.k, row, at.kv_head * a.head_dim, a.head_dim) * scale - lse);
        ds[j] = p * (dot(d_o, a.v, row, at.kv_head * a.v_dim, a.v_dim) - pull) * scale;
      });
      team.sync();
      team.each(a.head_dim, [&](std::int64_t d) {
        for (std::int64_t j = 0; j < count; ++j)
          sums[d] += ds[j] * load(a.k, a.key_row(at.sequence, first + j), at.kv_head * a.head_dim + d);
      });
    }
    team.each(a.head_dim, [&](std::int64_t d) {
      store(g.dq, at.row * g.dq.columns + at.head * a.head_dim + d, sums[d]);
    });
  }
};

// dv = sum over the queries that see the key of p * do; dk = sum of ds * q. Over the query heads of the key's
// head, in their order, then over queries.
struct KeyGrad {
  Attention a;
  AttentionGrad g;
  float scale;

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t index) const {
    const std::int64_t gathered = index / a.kv_heads, kv_head = index % a.kv_heads;
    const std::int64_t sequence = gathered / a.chunk % a.sequences;
    const std::int64_t key = gathered / a.chunk / a.sequences * a.chunk + gathered % a.chunk;
    float *p = team.scratch(), *ds = p + kChunk, *k = ds + kChunk, *v = k + a.head_dim;
    float *k_sums = v + a.v_dim, *v_sums = k_sums + a.head_dim;
    fetch(team, a.k, gathered, kv_head * a.head_dim, a.head_dim, k);
    fetch(team, a.v, gathered, kv_head * a.v_dim, a.v_dim, v);
    team.each(a.head_dim, [&](std::int64_t d) { k_sums[d] = 0; });
    team.each(a.v_dim, [&](std::int64_t d) { v_sums[d] = 0; });
    // Query i stands at position keys - queries + i and sees `window` positions back.
    const std::int64_t before = a.keys - a.queries;
    const std::int64_t first_query = key > before ? key - before : 0;
    std::int64_t last_query = key < a.keys ? a.queries : 0;
    if (a.window > 0 && key + a.window - before < last_query) last_query = key + a.window - before;
    const std::int64_t share = a.heads / a.kv_heads;
    for (std::int64_t head = kv_head * share; head < (kv_head + 1) * share; ++head) {
      for (std::int64_t first = first_query; first < last_query; first += kChunk) {
        const std::int64_t count = last_query - first < kChunk ? last_query - first : kChunk;
        add_queries(team, sequence * a.queries + first, count, head);
      }
    }
    team.each(a.head_dim, [&](std::int64_t d) {
      store(g.dk, gathered * g.dk.columns + kv_head * a.head_dim + d, k_sums[d]);
    });
    team.each(a.v_dim, [&](std::int64_t d) {
      store(g.dv, gathered * g.dv.columns + kv_head * a.v_dim + d, v_sums[d]);
    });
  }

  // Rows [row, row + count) of the queries of one head.
  MOEBIUS_DEVICE void add_queries(const Team& team, std::int64_t row, std::int64_t count,
                                  std::int64_t head) const {
    float *p = team.scratch(), *ds = p + kChunk, *k = ds + kChunk, *v = k + a.head_dim;
    float *k_sums = v + a.v_dim, *v_sums = k_sums + a.head_dim;
    team.sync();
    team.each(count, [&](std::int64_t i) {
      const std::int64_t at = (row + i) * a.heads + head;
      p[i] = expf(dot(k, a.q, row + i, head * a.head_dim, a.head_dim) * scale - load(g.lse, at));
      ds[i] = p[i] * (dot(v, g.d_o, row + i, head * a.v_dim, a.v_dim) - load(g.dot, at)) * scale;
    });
    team.sync();
    team.each(a.head_dim, [&](std::int64_t d) {
      for (std::int64_t i = 0; i < count; ++i) k_sums[d] += ds[i] * load(a.q, row + i, head * a.head_dim + d);
    });
    team.each(a.v_dim, [&](std::int64_t d) {
      for (std::int64_t i = 0; i < count; ++i) v_sums[d] += p[i] * load(g.d_o, row + i, head * a.v_dim + d);
    });
  }
};

float score_scale(const Attention& a) {
  CHECK(a.q.rows == a.sequences * a.queries && a.q.columns == a.heads * a.head_dim &&
            a.k.columns == a.kv_heads * a.head_dim && a.v.columns == a.kv_heads * a.v_dim &&
            a.k.rows == a.v.rows && a.queries <= a.keys && a.sequences * a.keys <= a.k.rows &&
            a.heads % a.kv_heads == 0,
        std::to_string(a.sequences) + " sequences of " + std::to_string(a.queries) + " queries and " +
            std::to_string(a.keys) + " keys in " + std::to_string(a.q.rows) + " and " +
            std::to_string(a.k.rows) + " rows");
  if (a.head_dim > kLargestHead || a.v_dim > kLargestHead) {
    throw run_error("cuda: heads of " + std::to_string(a.head_dim) + " and " + std::to_string(a.v_dim) +
                    " columns: at most " + std::to_string(kLargestHead) + " fit");
  }
  return static_cast<float>(a.score_scale / std::sqrt(static_cast<double>(a.head_dim)));
}

}  // namespace

void attention(Stream stream, const Attention& attention, const Operand& o, const Operand& lse) {
  launch_teams(stream, attention.q.rows * attention.heads,
               Forward{attention, o, lse, score_scale(attention)});
}

void attention_probabilities(Stream stream, const Attention& attention, const Operand& lse,
                             const Operand& p) {
  launch_teams(stream, attention.q.rows * attention.heads,
               Probabilities{attention, lse, p, score_scale(attention)});
}

void attention_grad(Stream stream, const Attention& attention, const AttentionGrad& grad) {
  const float scale = score_scale(attention);
  const std::int64_t queries = attention.q.rows * attention.heads;
  launch_teams(stream, queries, Dot{attention, grad});
  launch_teams(stream, queries, QueryGrad{attention, grad, scale});
  launch_teams(stream, attention.k.rows * attention.kv_heads, KeyGrad{attention, grad, scale});
}

}  // namespace moebius::cuda
