// The first pass of attention's gradient (kernels_flash_grad.cu): dq by teams of 128 queries that go through
// the keys.
#pragma once

#include "real/cuda/flash_grad.cuh"

namespace moebius::cuda {

// Wide heads leave a warp registers for the sums of 16 queries, and then for their q and do; narrower ones
// for the sums of 32, whose q and do are read from shared memory again and again.
template <int kHead, int kValue>
struct FlashQueryGrad {
  static constexpr int kM = kHead > 8 ? 1 : 2, kWarps = 8 / kM, kBlocks = kM;
  static constexpr bool kKept = kM == 1;
  static constexpr int kRowsOfWarp = kM * kFragmentRows, kQueries = kWarps * kRowsOfWarp;
  static constexpr int kKeys = 32, kColumns = kKeys / kFragmentColumns;
  static constexpr int kHeadStride = stride_of(kHead), kValueStride = stride_of(kValue);
  static constexpr int kKeyWords = kKeys * (kHeadStride + kValueStride);  // of k and v
  static constexpr int kScratch = kQueries * (kHeadStride + kValueStride) + 2 * kKeyWords;
  using Team = WarpTeam<kWarps>;

  Attention a;
  AttentionGrad g;
  Sight sight;
  RowNumbers numbers;
  float score_scale;
  FlashOrder order;

  struct Held {
    float dq[kM][2 * kHead][4], score[kM][kColumns][4], dp[kM][kColumns][4];
    float lse[kM][2], dot[kM][2];  // of the lane's rows
    FourWords q[kKept ? kHead : 1], d_o[kKept ? kValue : 1];
  };
  struct Tiles {
    SharedWords q, d_o, keys;
  };

  // Later queries see more keys.
  MOEBIUS_DEVICE void operator()(const Team& team, int item) const {
    const FlashPlace at = order.place(item);
    const int query = (order.tiles - 1 - at.tile) * kQueries;
    const int kv_head = at.head / static_cast<int>(a.heads / a.kv_heads);
    const int count = sight.queries - query < kQueries ? sight.queries - query : kQueries;
    const int last = sight.last_seen(query + count - 1), row = at.sequence * sight.queries + query;
    const SharedWords scratch(team.scratch());
    const Tiles t{scratch, scratch + kQueries * kHeadStride,
                  scratch + kQueries * (kHeadStride + kValueStride)};
    const auto copy = [&](int key, SharedWords to) {
      copy_keys<kKeys, kHead>(team, sight, head_stripe(a.k, kv_head, a.head_dim), at.sequence, key, last, to);
      copy_keys<kKeys, kValue>(team, sight, head_stripe(a.v, kv_head, a.v_dim), at.sequence, key, last,
                               to + kKeys * kHeadStride);
    };
    int key = sight.first_seen(query) / kKeys * kKeys, odd = 0;
    copy_rows<kQueries, kHead>(team, head_stripe(a.q, at.head, a.head_dim), row, count, t.q);
    copy_rows<kQueries, kValue>(team, head_stripe(g.d_o, at.head, a.v_dim), row, count, t.d_o);
    copy(key, t.keys);
    PerThread<Held> held;
    team.each_warp([&](const Warp& warp) { begin(warp, at, query + warp.index() * kRowsOfWarp, held); });
    if constexpr (kKept) {
      team.wait();
      team.sync();
      team.each_warp([&](const Warp& warp) { keep(warp, t, held); });
    }
    for (; key < last; key += kKeys, odd ^= 1) {
      team.wait();
      team.sync();
      if (key + kKeys < last) copy(key + kKeys, t.keys + (odd ^ 1) * kKeyWords);
      team.each_warp([&](const Warp& warp) {
        const int first = query + warp.index() * kRowsOfWarp;
        if (!sees(sight, first, kRowsOfWarp, key, kKeys)) return;
        score(warp, t, t.keys + odd * kKeyWords, held);
        if (!sees_all(sight, first, kRowsOfWarp, key, kKeys)) mask(warp, first, key, held);
        differentiate(warp, held);
        add_keys(warp, t.keys + odd * kKeyWords, held);
      });
    }
    team.each_warp([&](const Warp& warp) { end(warp, at, query + warp.index() * kRowsOfWarp, held); });
  }

  MOEBIUS_DEVICE void begin(const Warp& warp, const FlashPlace& at, int first, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int lane) {
      Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int m = 0; m < kM; ++m) {
        MOEBIUS_UNROLL
        for (int i = 0; i < 8 * kHead; ++i) h.dq[m][i / 4][i % 4] = 0;
        MOEBIUS_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int row = first + m * kFragmentRows + c_row(lane, 2 * half);
          const std::int64_t index = (std::int64_t{at.sequence} * a.heads + at.head) * numbers.stride + row;
          h.lse[m][half] = row < sight.queries ? numbers.lse[index] : INFINITY;
          h.dot[m][half] = row < sight.queries ? numbers.dot[index] : 0;
        }
      }
    });
  }

  MOEBIUS_DEVICE void keep(const Warp& warp, const Tiles& t, PerThread<Held>& held) const {
    const int row = warp.index() * kRowsOfWarp;
    PerThread<FourWords> w;
    MOEBIUS_UNROLL
    for (int i = 0; i < kHead; ++i) {
      load_left<kHeadStride>(warp, t.q, row, i, w);
      warp.lanes([&](int thread, int) { held[thread].q[i] = w[thread]; });
    }
    MOEBIUS_UNROLL
    for (int i = 0; i < kValue; ++i) {
      load_left<kValueStride>(warp, t.d_o, row, i, w);
      warp.lanes([&](int thread, int) { held[thread].d_o[i] = w[thread]; });
    }
  }

  MOEBIUS_DEVICE void score(const Warp& warp, const Tiles& t, SharedWords keys, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int) {
      MOEBIUS_UNROLL
      for (int m = 0; m < kM; ++m) {
        MOEBIUS_UNROLL
        for (int i = 0; i < 4 * kColumns; ++i)
          held[thread].score[m][i / 4][i % 4] = held[thread].dp[m][i / 4][i % 4] = 0;
      }
    });
    const int row = warp.index() * kRowsOfWarp;
    multiply_tile<MatrixOrder::kRows, kHeadStride, kM, kColumns / 2, kHead>(
        warp, keys,
        [&](int m, int i, PerThread<FourWords>& w) {
          if constexpr (kKept) {
            warp.lanes([&](int thread, int) { w[thread] = held[thread].q[i]; });
          } else {
            load_left<kHeadStride>(warp, t.q, row + m * kFragmentRows, i, w);
          }
        },
        [&](int thread, int m, int n) { return held[thread].score[m][n]; });
    multiply_tile<MatrixOrder::kRows, kValueStride, kM, kColumns / 2, kValue>(
        warp, keys + kKeys * kHeadStride,
        [&](int m, int i, PerThread<FourWords>& w) {
          if constexpr (kKept) {
            warp.lanes([&](int thread, int) { w[thread] = held[thread].d_o[i]; });
          } else {
            load_left<kValueStride>(warp, t.d_o, row + m * kFragmentRows, i, w);
          }
        },
        [&](int thread, int m, int n) { return held[thread].dp[m][n]; });
  }

  MOEBIUS_DEVICE void mask(const Warp& warp, int first, int key, PerThread<Held>& held) const {
    mask_scores<kM, kColumns>(warp, sight, first, key,
                              [&](int thread, int m, int n) { return held[thread].score[m][n]; });
  }

  // Scores become ds.
  MOEBIUS_DEVICE void differentiate(const Warp& warp, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int) {
      Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int m = 0; m < kM; ++m) {
        MOEBIUS_UNROLL
        for (int i = 0; i < 4 * kColumns; ++i) {
          float& s = h.score[m][i / 4][i % 4];
          const int half = i % 4 / 2;
          s = fast_exp2(s * (score_scale * kLog2E) - h.lse[m][half]) *
              (h.dp[m][i / 4][i % 4] - h.dot[m][half]);
        }
      }
    });
  }

  MOEBIUS_DEVICE void add_keys(const Warp& warp, SharedWords keys, PerThread<Held>& held) const {
    multiply_tile<MatrixOrder::kTransposed, kHeadStride, kM, kHead, kKeys / 16>(
        warp, keys,
        [&](int m, int i, PerThread<FourWords>& w) {
          warp.lanes([&](int thread, int) {
            w[thread] = left_of_sums(held[thread].score[m][2 * i], held[thread].score[m][2 * i + 1]);
          });
        },
        [&](int thread, int m, int n) { return held[thread].dq[m][n]; });
  }

  MOEBIUS_DEVICE void end(const Warp& warp, const FlashPlace& at, int first, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int lane) {
      MOEBIUS_UNROLL
      for (int m = 0; m < kM; ++m) {
        MOEBIUS_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int row = first + m * kFragmentRows + c_row(lane, 2 * half);
          if (row >= sight.queries) continue;
          const RowOut out(g.dq, at.sequence * sight.queries + row, at.head * a.head_dim + c_column(lane, 0));
          const int width = static_cast<int>(a.head_dim);
          MOEBIUS_UNROLL
          for (int n = 0; n < 2 * kHead; ++n) {
            const float* dq = &held[thread].dq[m][n][2 * half];
            if (n * kFragmentColumns < width)
              out.store(n * kFragmentColumns, dq[0] * score_scale, dq[1] * score_scale);
          }
        }
      }
    });
  }
};

}  // namespace moebius::cuda
