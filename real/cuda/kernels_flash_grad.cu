// Gradients of causal attention on tensor cores, in two passes, so that every sum has one owner and one
// order: dq by teams of 128 queries that go through the keys, dk and dv by teams of 128 keys that go through
// the queries of all heads that share them. Both compute the exponentials p = exp(score - lse) again, and
// with them ds = p * (do * v - D) * scale; p and ds are rounded to BF16 for the products that they weigh.
#include "hw/error.h"
#include "real/cuda/flash_tiles.cuh"

namespace moebius::cuda {
namespace {

constexpr int kKeys = 32, kKeyFragments = kKeys / kFragmentColumns;          // of the first pass at a time
constexpr int kQueries = 16, kQueryFragments = kQueries / kFragmentColumns;  // of the second
constexpr int kMostHeads = 2 * kHeadFragments, kMostValues = 2 * kValueFragments;  // of 8 columns

// What both passes know of a score: where it stands, and what makes a gradient of it.
struct ScoreGrad {
  float p, ds;
};
MOEBIUS_DEVICE ScoreGrad grad_of(float score, float dp, float lse, float pull, float scale) {
  const float p = expf(score * scale - lse);
  return {p, p * (dp - pull) * scale};
}

struct FlashQueryGrad {
  Attention a;
  AttentionGrad g;
  float scale;
  std::int64_t query_tiles;

  struct Held {
    LeftWords q[kHeadFragments];
    float dq[kMostHeads][4], score[kKeyFragments][4], dp[kKeyFragments][4];
    float lse[2], pull[2];  // of the lane's two rows
  };

  struct Tiles {
    std::uint32_t *d_o, *k, *v, *k_across;
  };
  static std::int64_t scratch_of(const Attention& a) {
    return kRowsOfTeam * stride_of(a.v_dim) + kKeys * (stride_of(a.head_dim) + stride_of(a.v_dim)) +
           a.head_dim * stride_of(kKeys);
  }
  MOEBIUS_DEVICE Tiles tiles(const Team& team) const {
    Tiles t;
    t.d_o = reinterpret_cast<std::uint32_t*>(team.scratch());
    t.k = t.d_o + kRowsOfTeam * stride_of(a.v_dim);
    t.v = t.k + kKeys * stride_of(a.head_dim);
    t.k_across = t.v + kKeys * stride_of(a.v_dim);
    return t;
  }

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t item) const {
    const std::int64_t rest = item / a.heads;
    const FlashPlace at{rest / query_tiles, (query_tiles - 1 - rest % query_tiles) * kRowsOfTeam,
                        item % a.heads};
    const std::int64_t kv_head = at.head * a.kv_heads / a.heads, first_row = at.sequence * a.queries;
    const Stripe k = head_stripe(a.k, kv_head, a.head_dim), v = head_stripe(a.v, kv_head, a.v_dim);
    const Tiles t = tiles(team);
    const auto query_row = [&](std::int64_t i) {
      return at.first + i < a.queries ? first_row + at.first + i : std::int64_t{-1};
    };
    load_rows(team, head_stripe(g.d_o, at.head, a.v_dim), kRowsOfTeam, query_row, t.d_o);
    PerThread<Held> held;
    each_warp(team, [&](const Warp& warp) { begin(warp, at, held); });
    const std::int64_t beyond = at.first + kRowsOfTeam < a.queries ? at.first + kRowsOfTeam : a.queries;
    const std::int64_t last = a.last_seen(beyond - 1);
    for (std::int64_t key = a.first_seen(at.first) / kKeys * kKeys; key < last; key += kKeys) {
      const auto key_row = [&](std::int64_t i) {
        return key + i < last ? a.key_row(at.sequence, key + i) : std::int64_t{-1};
      };
      team.sync();
      load_rows(team, k, kKeys, key_row, t.k);
      load_rows(team, v, kKeys, key_row, t.v);
      load_columns(team, k, kKeys, key_row, t.k_across);
      team.sync();
      each_warp(team, [&](const Warp& warp) { add_keys(warp, at, key, t, held); });
    }
    each_warp(team, [&](const Warp& warp) { end(warp, at, held); });
  }

  MOEBIUS_DEVICE std::int64_t query(const Warp& warp, const FlashPlace& at) const {
    return at.first + warp.index() * kFragmentRows;
  }

  MOEBIUS_DEVICE void begin(const Warp& warp, const FlashPlace& at, PerThread<Held>& held) const {
    const SomeRows q{head_stripe(a.q, at.head, a.head_dim), at.sequence * a.queries, a.queries};
    warp.lanes([&](int thread, int lane) {
      Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int i = 0; i < kHeadFragments; ++i) h.q[i] = left_of_rows(q, query(warp, at), lane, i);
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kMostHeads; ++i) h.dq[i / 4][i % 4] = 0;
      for (int i = 0; i < 2; ++i) {
        const std::int64_t row = query(warp, at) + c_row(lane, 2 * i);
        const std::int64_t index = (at.sequence * a.queries + row) * a.heads + at.head;
        h.lse[i] = row < a.queries ? load(g.lse, index) : 0;
        h.pull[i] = row < a.queries ? load(g.dot, index) : 0;
      }
    });
  }

  MOEBIUS_DEVICE void add_keys(const Warp& warp, const FlashPlace& at, std::int64_t key, const Tiles& t,
                               PerThread<Held>& held) const {
    warp.lanes([&](int thread, int) {
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kKeyFragments; ++i)
        held[thread].score[i / 4][i % 4] = held[thread].dp[i / 4][i % 4] = 0;
    });
    multiply_tile<kKeyFragments, kHeadFragments>(
        warp, {t.k, stride_of(a.head_dim), kKeyFragments, static_cast<int>(a.head_dim / 16)},
        [&](int thread, int, int i) { return held[thread].q[i]; },
        [&](int thread, int j) { return held[thread].score[j]; });
    multiply_tile<kKeyFragments, kValueFragments>(
        warp, {t.v, stride_of(a.v_dim), kKeyFragments, static_cast<int>(a.v_dim / 16)},
        [&](int, int lane, int i) {
          return left_of_tile(t.d_o, stride_of(a.v_dim), warp.index() * kFragmentRows, lane, i);
        },
        [&](int thread, int j) { return held[thread].dp[j]; });
    warp.lanes([&](int thread, int lane) {
      Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kKeyFragments; ++i) {
        const int r = i % 4;
        const std::int64_t row = query(warp, at) + c_row(lane, r);
        const std::int64_t seen = key + i / 4 * kFragmentColumns + c_column(lane, r);
        const bool counts = row < a.queries && seen >= a.first_seen(row) && seen < a.last_seen(row);
        float& s = h.score[i / 4][r];
        s = counts ? grad_of(s, h.dp[i / 4][r], h.lse[r / 2], h.pull[r / 2], scale).ds : 0;
      }
    });
    multiply_tile<kMostHeads, kKeys / 16>(
        warp, {t.k_across, stride_of(kKeys), static_cast<int>(a.head_dim / kFragmentColumns), kKeys / 16},
        [&](int thread, int, int i) {
          return left_of_sums(held[thread].score[2 * i], held[thread].score[2 * i + 1]);
        },
        [&](int thread, int j) { return held[thread].dq[j]; });
  }

  MOEBIUS_DEVICE void end(const Warp& warp, const FlashPlace& at, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int lane) {
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kMostHeads; ++i) {
        const std::int64_t column = i / 4 * kFragmentColumns + c_column(lane, i % 4);
        const std::int64_t row = query(warp, at) + c_row(lane, i % 4);
        if (row < a.queries && column < a.head_dim)
          store(g.dq, (at.sequence * a.queries + row) * g.dq.columns + at.head * a.head_dim + column,
                held[thread].dq[i / 4][i % 4]);
      }
    });
  }
};

struct FlashKeyGrad {
  Attention a;
  AttentionGrad g;
  float scale;
  std::int64_t key_tiles;  // of a chunk of a sequence

  struct Held {
    float dk[kMostHeads][4], dv[kMostValues][4];
    float score[kQueryFragments][4], dp[kQueryFragments][4];  // [key][query]
  };

  struct Tiles {
    std::uint32_t *k, *v, *q, *d_o, *q_across, *d_o_across;
  };
  static std::int64_t scratch_of(const Attention& a) {
    const std::int64_t rows = stride_of(a.head_dim) + stride_of(a.v_dim);
    return (kRowsOfTeam + kQueries) * rows + (a.head_dim + a.v_dim) * stride_of(kQueries);
  }
  MOEBIUS_DEVICE Tiles tiles(const Team& team) const {
    Tiles t;
    t.k = reinterpret_cast<std::uint32_t*>(team.scratch());
    t.v = t.k + kRowsOfTeam * stride_of(a.head_dim);
    t.q = t.v + kRowsOfTeam * stride_of(a.v_dim);
    t.d_o = t.q + kQueries * stride_of(a.head_dim);
    t.q_across = t.d_o + kQueries * stride_of(a.v_dim);
    t.d_o_across = t.q_across + a.head_dim * stride_of(kQueries);
    return t;
  }

  // Keys of one chunk stand one below the other.
  struct Keys {
    std::int64_t sequence, first, row, count, kv_head;  // key; its row; keys of the tile
  };
  MOEBIUS_DEVICE Keys keys_of(std::int64_t item) const {
    const std::int64_t kv_head = item % a.kv_heads, tile = item / a.kv_heads % key_tiles;
    const std::int64_t rest = item / a.kv_heads / key_tiles;  // chunk * sequences + sequence
    const std::int64_t within = tile * kRowsOfTeam;
    const std::int64_t count = a.chunk - within < kRowsOfTeam ? a.chunk - within : kRowsOfTeam;
    return {rest % a.sequences, rest / a.sequences * a.chunk + within, rest * a.chunk + within, count,
            kv_head};
  }

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t item) const {
    const Keys keys = keys_of(item);
    const Tiles t = tiles(team);
    const auto key_row = [&](std::int64_t i) { return i < keys.count ? keys.row + i : std::int64_t{-1}; };
    load_rows(team, head_stripe(a.k, keys.kv_head, a.head_dim), kRowsOfTeam, key_row, t.k);
    load_rows(team, head_stripe(a.v, keys.kv_head, a.v_dim), kRowsOfTeam, key_row, t.v);
    PerThread<Held> held;
    each_warp(team, [&](const Warp& warp) {
      warp.lanes([&](int thread, int) {
        MOEBIUS_UNROLL
        for (int i = 0; i < 4 * kMostHeads; ++i) held[thread].dk[i / 4][i % 4] = 0;
        MOEBIUS_UNROLL
        for (int i = 0; i < 4 * kMostValues; ++i) held[thread].dv[i / 4][i % 4] = 0;
      });
    });
    // Query i stands at position keys - queries + i.
    const std::int64_t before = a.keys - a.queries, last_key = keys.first + keys.count - 1;
    const std::int64_t first = keys.first > before ? keys.first - before : 0;
    std::int64_t last = keys.first < a.keys ? a.queries : 0;
    if (a.window > 0 && last_key + a.window - before < last) last = last_key + a.window - before;
    const std::int64_t share = a.heads / a.kv_heads;
    for (std::int64_t head = keys.kv_head * share; head < (keys.kv_head + 1) * share; ++head) {
      for (std::int64_t query = first / kQueries * kQueries; query < last; query += kQueries)
        add_queries(team, keys, {keys.sequence, query, head}, t, held);
    }
    each_warp(team, [&](const Warp& warp) { end(warp, keys, held); });
  }

  MOEBIUS_DEVICE void add_queries(const Team& team, const Keys& keys, const FlashPlace& at, const Tiles& t,
                                  PerThread<Held>& held) const {
    const std::int64_t first_row = at.sequence * a.queries;
    const auto row_of = [&](std::int64_t i) {
      return at.first + i < a.queries ? first_row + at.first + i : std::int64_t{-1};
    };
    const Stripe q = head_stripe(a.q, at.head, a.head_dim), d_o = head_stripe(g.d_o, at.head, a.v_dim);
    team.sync();
    load_rows(team, q, kQueries, row_of, t.q);
    load_rows(team, d_o, kQueries, row_of, t.d_o);
    load_columns(team, q, kQueries, row_of, t.q_across);
    load_columns(team, d_o, kQueries, row_of, t.d_o_across);
    team.sync();
    each_warp(team, [&](const Warp& warp) {
      score(warp, t, held);
      differentiate(warp, keys, at, held);
      add_products(warp, t, held);
    });
  }

  MOEBIUS_DEVICE void score(const Warp& warp, const Tiles& t, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int) {
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kQueryFragments; ++i)
        held[thread].score[i / 4][i % 4] = held[thread].dp[i / 4][i % 4] = 0;
    });
    const int row = warp.index() * kFragmentRows;
    multiply_tile<kQueryFragments, kHeadFragments>(
        warp, {t.q, stride_of(a.head_dim), kQueryFragments, static_cast<int>(a.head_dim / 16)},
        [&](int, int lane, int i) { return left_of_tile(t.k, stride_of(a.head_dim), row, lane, i); },
        [&](int thread, int j) { return held[thread].score[j]; });
    multiply_tile<kQueryFragments, kValueFragments>(
        warp, {t.d_o, stride_of(a.v_dim), kQueryFragments, static_cast<int>(a.v_dim / 16)},
        [&](int, int lane, int i) { return left_of_tile(t.v, stride_of(a.v_dim), row, lane, i); },
        [&](int thread, int j) { return held[thread].dp[j]; });
  }

  // Scores become p, and dp becomes ds.
  MOEBIUS_DEVICE void differentiate(const Warp& warp, const Keys& keys, const FlashPlace& at,
                                    PerThread<Held>& held) const {
    warp.lanes([&](int thread, int lane) {
      Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kQueryFragments; ++i) {
        const std::int64_t query = at.first + i / 4 * kFragmentColumns + c_column(lane, i % 4);
        const std::int64_t key = keys.first + warp.index() * kFragmentRows + c_row(lane, i % 4);
        const bool counts = query < a.queries && key >= a.first_seen(query) && key < a.last_seen(query);
        float &s = h.score[i / 4][i % 4], &dp = h.dp[i / 4][i % 4];
        ScoreGrad grad{0, 0};
        if (counts) {
          const std::int64_t index = (at.sequence * a.queries + query) * a.heads + at.head;
          grad = grad_of(s, dp, load(g.lse, index), load(g.dot, index), scale);
        }
        s = grad.p;
        dp = grad.ds;
      }
    });
  }

  MOEBIUS_DEVICE void add_products(const Warp& warp, const Tiles& t, PerThread<Held>& held) const {
    static_assert(kQueryFragments == 2);  // a fragment deep
    multiply_tile<kMostValues, 1>(
        warp, {t.d_o_across, stride_of(kQueries), static_cast<int>(a.v_dim / kFragmentColumns), 1},
        [&](int thread, int, int) { return left_of_sums(held[thread].score[0], held[thread].score[1]); },
        [&](int thread, int j) { return held[thread].dv[j]; });
    multiply_tile<kMostHeads, 1>(
        warp, {t.q_across, stride_of(kQueries), static_cast<int>(a.head_dim / kFragmentColumns), 1},
        [&](int thread, int, int) { return left_of_sums(held[thread].dp[0], held[thread].dp[1]); },
        [&](int thread, int j) { return held[thread].dk[j]; });
  }

  MOEBIUS_DEVICE void end(const Warp& warp, const Keys& keys, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int lane) {
      const auto put = [&](const Operand& y, std::int64_t width, int i, float value) {
        const std::int64_t column = i / 4 * kFragmentColumns + c_column(lane, i % 4);
        const std::int64_t key = warp.index() * kFragmentRows + c_row(lane, i % 4);
        if (key < keys.count && column < width)
          store(y, (keys.row + key) * y.columns + keys.kv_head * width + column, value);
      };
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kMostHeads; ++i) put(g.dk, a.head_dim, i, held[thread].dk[i / 4][i % 4]);
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kMostValues; ++i) put(g.dv, a.v_dim, i, held[thread].dv[i / 4][i % 4]);
    });
  }
};

std::int64_t tiles_of(std::int64_t rows) {
  return (rows + kRowsOfTeam - 1) / kRowsOfTeam;
}

}  // namespace

bool flash_grad_takes(const Attention& a, const AttentionGrad& g) {
  return flash_takes(a) && g.d_o.storage == Storage::kBf16 && a.chunk > 0 &&
         std::max(FlashQueryGrad::scratch_of(a), FlashKeyGrad::scratch_of(a)) <= widest_scratch();
}

void flash_attention_grad(Stream stream, const Attention& a, const AttentionGrad& g) {
  CHECK(flash_grad_takes(a, g) && a.k.rows % a.chunk == 0, "attention that tensor cores do not take");
  const auto scale = static_cast<float>(a.score_scale / std::sqrt(static_cast<double>(a.head_dim)));
  const std::int64_t query_tiles = tiles_of(a.queries), key_tiles = tiles_of(a.chunk);
  attention_dots(stream, a, g);
  launch_wide_teams(stream, a.sequences * query_tiles * a.heads, FlashQueryGrad::scratch_of(a),
                    FlashQueryGrad{a, g, scale, query_tiles});
  launch_wide_teams(stream, a.k.rows / a.chunk * key_tiles * a.kv_heads, FlashKeyGrad::scratch_of(a),
                    FlashKeyGrad{a, g, scale, key_tiles});
}

}  // namespace moebius::cuda
