// Causal attention on tensor cores, forward: a team takes 128 queries of a head, 16 to a warp, and goes
// through the keys they see 64 at a time with a running maximum and sum (FlashAttention-2, arXiv 2307.08691).
// Scores are FP32; their exponentials are rounded to BF16 for the product with the values.
#include "hw/error.h"
#include "real/cuda/flash_tiles.cuh"

namespace moebius::cuda {
namespace {

constexpr int kKeys = 64, kScoreFragments = kKeys / kFragmentColumns;

template <int kHead, int kValue>
struct FlashForward {
  Attention a;
  Operand o, lse;
  float scale;
  std::int64_t query_tiles;

  struct Held {
    LeftWords q[kHead];
    float o[2 * kValue][4], score[kScoreFragments][4];
    float maximum[2], sum[2], shrink[2];  // of the lane's two rows; the sum is this lane's share
  };

  // The longest first: later queries see more keys.
  MOEBIUS_DEVICE FlashPlace place_of(std::int64_t item) const {
    const std::int64_t rest = item / a.heads;
    return {rest / query_tiles, (query_tiles - 1 - rest % query_tiles) * kRowsOfTeam, item % a.heads};
  }

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t item) const {
    const FlashPlace at = place_of(item);
    const std::int64_t kv_head = at.head * a.kv_heads / a.heads;
    const Stripe k = head_stripe(a.k, kv_head, a.head_dim), v = head_stripe(a.v, kv_head, a.v_dim);
    auto* k_tile = reinterpret_cast<std::uint32_t*>(team.scratch());
    std::uint32_t* v_tile = k_tile + kKeys * stride_of(a.head_dim);
    PerThread<Held> held;
    each_warp(team, [&](const Warp& warp) { begin(warp, at, held); });
    const std::int64_t beyond = at.first + kRowsOfTeam < a.queries ? at.first + kRowsOfTeam : a.queries;
    const std::int64_t last = a.last_seen(beyond - 1);
    for (std::int64_t key = a.first_seen(at.first) / kKeys * kKeys; key < last; key += kKeys) {
      const auto row_of = [&](std::int64_t i) {
        return key + i < last ? a.key_row(at.sequence, key + i) : std::int64_t{-1};
      };
      team.sync();
      load_rows(team, k, kKeys, row_of, k_tile);
      load_columns(team, v, kKeys, row_of, v_tile);
      team.sync();
      each_warp(team, [&](const Warp& warp) {
        if (!sees(warp, at, key)) return;
        score(warp, at, key, k_tile, held);
        add_values(warp, v_tile, held);
      });
    }
    each_warp(team, [&](const Warp& warp) { end(warp, at, held); });
  }

  MOEBIUS_DEVICE std::int64_t query(const Warp& warp, const FlashPlace& at) const {
    return at.first + warp.index() * kFragmentRows;
  }
  MOEBIUS_DEVICE bool sees(const Warp& warp, const FlashPlace& at, std::int64_t key) const {
    const std::int64_t first = query(warp, at);
    return first < a.queries && key < a.last_seen(first + kFragmentRows - 1) &&
           key + kKeys > a.first_seen(first);
  }

  MOEBIUS_DEVICE void begin(const Warp& warp, const FlashPlace& at, PerThread<Held>& held) const {
    const SomeRows q{head_stripe(a.q, at.head, a.head_dim), at.sequence * a.queries, a.queries};
    warp.lanes([&](int thread, int lane) {
      Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int i = 0; i < kHead; ++i) h.q[i] = left_of_rows(q, query(warp, at), lane, i);
      MOEBIUS_UNROLL
      for (int i = 0; i < 8 * kValue; ++i) h.o[i / 4][i % 4] = 0;
      for (int i = 0; i < 2; ++i) {
        h.maximum[i] = -INFINITY;
        h.sum[i] = 0;
      }
    });
  }

  // Scores of 16 queries and 64 keys, as exponentials under the new maximum.
  MOEBIUS_DEVICE void score(const Warp& warp, const FlashPlace& at, std::int64_t key,
                            const std::uint32_t* k_tile, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int) {
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kScoreFragments; ++i) held[thread].score[i / 4][i % 4] = 0;
    });
    multiply_tile<kScoreFragments, kHead>(
        warp, {k_tile, stride_of(a.head_dim), kScoreFragments, static_cast<int>(a.head_dim / 16)},
        [&](int thread, int, int i) { return held[thread].q[i]; },
        [&](int thread, int j) { return held[thread].score[j]; });
    warp.lanes([&](int thread, int lane) {
      Held& h = held[thread];
      h.shrink[0] = h.maximum[0];
      h.shrink[1] = h.maximum[1];
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kScoreFragments; ++i) {
        const int r = i % 4;
        const std::int64_t row = query(warp, at) + c_row(lane, r);
        const std::int64_t seen = key + i / 4 * kFragmentColumns + c_column(lane, r);
        float& s = h.score[i / 4][r];
        s = seen >= a.first_seen(row) && seen < a.last_seen(row) ? s * scale : -INFINITY;
        h.maximum[r / 2] = fmaxf(h.maximum[r / 2], s);
      }
    });
    for (int row = 0; row < 2; ++row)
      warp.join_rows([&](int thread) -> float& { return held[thread].maximum[row]; },
                     [](float x, float y) { return fmaxf(x, y); });
    warp.lanes([&](int thread, int) {
      Held& h = held[thread];
      float base[2];  // of rows that have seen nothing yet: any
      for (int row = 0; row < 2; ++row) {
        base[row] = h.maximum[row] == -INFINITY ? 0 : h.maximum[row];
        h.shrink[row] = expf(h.shrink[row] - base[row]);
        h.sum[row] *= h.shrink[row];
      }
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kScoreFragments; ++i) {
        float& s = h.score[i / 4][i % 4];
        s = expf(s - base[i % 4 / 2]);
        h.sum[i % 4 / 2] += s;
      }
    });
  }

  MOEBIUS_DEVICE void add_values(const Warp& warp, const std::uint32_t* v_tile, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int) {
      Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int i = 0; i < 8 * kValue; ++i) h.o[i / 4][i % 4] *= h.shrink[i % 4 / 2];
    });
    multiply_tile<2 * kValue, kKeys / 16>(
        warp, {v_tile, stride_of(kKeys), static_cast<int>(a.v_dim / kFragmentColumns), kKeys / 16},
        [&](int thread, int, int i) {
          return left_of_sums(held[thread].score[2 * i], held[thread].score[2 * i + 1]);
        },
        [&](int thread, int j) { return held[thread].o[j]; });
  }

  MOEBIUS_DEVICE void end(const Warp& warp, const FlashPlace& at, PerThread<Held>& held) const {
    for (int row = 0; row < 2; ++row)
      warp.join_rows([&](int thread) -> float& { return held[thread].sum[row]; },
                     [](float x, float y) { return x + y; });
    warp.lanes([&](int thread, int lane) {
      const Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int i = 0; i < 8 * kValue; ++i) {
        const int r = i % 4;
        const std::int64_t column = i / 4 * kFragmentColumns + c_column(lane, r);
        const std::int64_t row = query(warp, at) + c_row(lane, r);
        if (row < a.queries && column < a.v_dim)
          store(o, (at.sequence * a.queries + row) * o.columns + at.head * a.v_dim + column,
                h.o[i / 4][r] / h.sum[r / 2]);
      }
      for (int i = 0; i < 2; ++i) {
        const std::int64_t row = query(warp, at) + c_row(lane, 2 * i);
        if (row < a.queries && lane % 4 == 0)
          store(lse, (at.sequence * a.queries + row) * a.heads + at.head, h.maximum[i] + logf(h.sum[i]));
      }
    });
  }
};

std::int64_t scratch_of(const Attention& a) {
  return kKeys * stride_of(a.head_dim) + a.v_dim * stride_of(kKeys);
}

}  // namespace

bool flash_takes(const Attention& a) {
  return a.q.storage == Storage::kBf16 && a.k.storage == Storage::kBf16 && a.v.storage == Storage::kBf16 &&
         a.head_dim % 16 == 0 && a.v_dim % 16 == 0 && a.head_dim <= 16 * kHeadFragments &&
         a.v_dim <= 16 * kValueFragments && a.heads % a.kv_heads == 0 && scratch_of(a) <= widest_scratch();
}

void flash_attention(Stream stream, const Attention& a, const Operand& o, const Operand& lse) {
  CHECK(flash_takes(a) && a.q.rows == a.sequences * a.queries && a.queries <= a.keys &&
            a.sequences * a.keys <= a.k.rows,
        "attention that tensor cores do not take");
  const auto scale = static_cast<float>(a.score_scale / std::sqrt(static_cast<double>(a.head_dim)));
  const std::int64_t tiles = (a.queries + kRowsOfTeam - 1) / kRowsOfTeam;
  const std::int64_t items = a.sequences * tiles * a.heads;
  if (a.head_dim <= 64 && a.v_dim <= 64) {
    launch_wide_teams(stream, items, scratch_of(a), FlashForward<4, 4>{a, o, lse, scale, tiles});
  } else if (a.head_dim <= 128) {
    launch_wide_teams(stream, items, scratch_of(a), FlashForward<8, 8>{a, o, lse, scale, tiles});
  } else {
    launch_wide_teams(stream, items, scratch_of(a), FlashForward<12, 8>{a, o, lse, scale, tiles});
  }
}

}  // namespace moebius::cuda
