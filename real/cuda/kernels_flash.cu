// Causal attention on tensor cores, forward: a team takes 128 queries of a head, 32 to a warp, and goes
// through the keys they see 64 at a time with a running maximum and sum (FlashAttention-2, arXiv 2307.08691).
// Scores are FP32; their exponentials are rounded to BF16 for the product with the values. Values arrive
// while scores are computed, the next keys while values are added.
#include "real/cuda/flash_tiles.cuh"

namespace moebius::cuda {
namespace {

template <int kHead, int kValue>
struct FlashForward {
  static constexpr int kWarps = 4, kBlocks = 2;
  static constexpr int kM = 2, kRowsOfWarp = kM * kFragmentRows, kQueries = kWarps * kRowsOfWarp;
  static constexpr int kKeys = 64, kColumns = kKeys / kFragmentColumns;
  static constexpr int kHeadStride = stride_of(kHead), kValueStride = stride_of(kValue);
  static constexpr int kScratch = (kQueries + kKeys) * kHeadStride + kKeys * kValueStride;
  using Team = WarpTeam<kWarps>;

  Attention a;
  Operand o, lse;
  Sight sight;
  float scale;  // of exponents of two
  FlashOrder order;

  struct Held {
    float o[kM][2 * kValue][4], score[kM][kColumns][4];
    float maximum[kM][2], sum[kM][2], shrink[kM][2];  // of the lane's rows; the sum is this lane's share
  };
  struct Tiles {
    SharedWords q, k, v;
  };

  // Later queries see more keys.
  MOEBIUS_DEVICE void operator()(const Team& team, int item) const {
    const FlashPlace at = order.place(item);
    const int query = (order.tiles - 1 - at.tile) * kQueries;
    const int kv_head = at.head / static_cast<int>(a.heads / a.kv_heads);
    const Stripe k = head_stripe(a.k, kv_head, a.head_dim), v = head_stripe(a.v, kv_head, a.v_dim);
    const SharedWords scratch(team.scratch());
    const Tiles t{scratch, scratch + kQueries * kHeadStride, scratch + (kQueries + kKeys) * kHeadStride};
    const int count = sight.queries - query < kQueries ? sight.queries - query : kQueries;
    const int last = sight.last_seen(query + count - 1);
    int key = sight.first_seen(query) / kKeys * kKeys;
    copy_rows<kQueries, kHead>(team, head_stripe(a.q, at.head, a.head_dim),
                               at.sequence * sight.queries + query, count, t.q);
    copy_keys<kKeys, kHead>(team, sight, k, at.sequence, key, last, t.k);
    PerThread<Held> held;
    team.each_warp([&](const Warp& warp) { begin(warp, held); });
    for (; key < last; key += kKeys) {
      team.wait();
      team.sync();
      copy_keys<kKeys, kValue>(team, sight, v, at.sequence, key, last, t.v);
      team.each_warp([&](const Warp& warp) {
        if (sees(query + warp.index() * kRowsOfWarp, key)) score(warp, t, held);
      });
      team.wait();
      team.sync();
      if (key + kKeys < last) copy_keys<kKeys, kHead>(team, sight, k, at.sequence, key + kKeys, last, t.k);
      team.each_warp([&](const Warp& warp) {
        const int first = query + warp.index() * kRowsOfWarp;
        if (!sees(first, key)) return;
        if (!sees_all(first, key)) mask(warp, first, key, held);
        exponentiate(warp, held);
        add_values(warp, t, held);
      });
    }
    team.each_warp([&](const Warp& warp) {
      end(warp, at.sequence * sight.queries, query + warp.index() * kRowsOfWarp, at.head, held);
    });
  }

  // Of a warp's queries and a tile of keys: whether one sees one; whether all see all.
  MOEBIUS_DEVICE bool sees(int first, int key) const {
    return first < sight.queries && key < sight.last_seen(first + kRowsOfWarp - 1) &&
           key + kKeys > sight.first_seen(first);
  }
  MOEBIUS_DEVICE bool sees_all(int first, int key) const {
    return key + kKeys <= sight.last_seen(first) && key >= sight.first_seen(first + kRowsOfWarp - 1);
  }

  MOEBIUS_DEVICE void begin(const Warp& warp, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int) {
      Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int m = 0; m < kM; ++m) {
        MOEBIUS_UNROLL
        for (int i = 0; i < 8 * kValue; ++i) h.o[m][i / 4][i % 4] = 0;
        MOEBIUS_UNROLL
        for (int half = 0; half < 2; ++half) {
          h.maximum[m][half] = -INFINITY;
          h.sum[m][half] = 0;
        }
      }
    });
  }

  MOEBIUS_DEVICE void score(const Warp& warp, const Tiles& t, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int) {
      MOEBIUS_UNROLL
      for (int m = 0; m < kM; ++m) {
        MOEBIUS_UNROLL
        for (int i = 0; i < 4 * kColumns; ++i) held[thread].score[m][i / 4][i % 4] = 0;
      }
    });
    multiply_tile<MatrixOrder::kRows, kHeadStride, kM, kColumns / 2, kHead>(
        warp, t.k,
        [&](int m, int i, PerThread<FourWords>& w) {
          load_left<kHeadStride>(warp, t.q, warp.index() * kRowsOfWarp + m * kFragmentRows, i, w);
        },
        [&](int thread, int m, int n) { return held[thread].score[m][n]; });
  }

  MOEBIUS_DEVICE void mask(const Warp& warp, int first, int key, PerThread<Held>& held) const {
    mask_scores<kM, kColumns>(warp, sight, first, key,
                              [&](int thread, int m, int n) { return held[thread].score[m][n]; });
  }

  // Scores become exponentials under the new maximum, which shrinks what was summed before.
  MOEBIUS_DEVICE void exponentiate(const Warp& warp, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int) {
      Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int m = 0; m < kM; ++m) {
        MOEBIUS_UNROLL
        for (int half = 0; half < 2; ++half) h.shrink[m][half] = h.maximum[m][half];
        MOEBIUS_UNROLL
        for (int i = 0; i < 4 * kColumns; ++i)
          h.maximum[m][i % 4 / 2] = fmaxf(h.maximum[m][i % 4 / 2], h.score[m][i / 4][i % 4]);
      }
    });
    MOEBIUS_UNROLL
    for (int row = 0; row < 2 * kM; ++row)
      warp.join_rows([&](int thread) -> float& { return held[thread].maximum[row / 2][row % 2]; },
                     [](float x, float y) { return fmaxf(x, y); });
    warp.lanes([&](int thread, int) {
      Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int m = 0; m < kM; ++m) {
        float base[2];  // of rows that have seen nothing yet: any
        MOEBIUS_UNROLL
        for (int half = 0; half < 2; ++half) {
          const float maximum = h.maximum[m][half];
          base[half] = maximum == -INFINITY ? 0 : maximum * scale;
          h.shrink[m][half] = fast_exp2(h.shrink[m][half] * scale - base[half]);
          h.sum[m][half] *= h.shrink[m][half];
        }
        MOEBIUS_UNROLL
        for (int i = 0; i < 4 * kColumns; ++i) {
          float& s = h.score[m][i / 4][i % 4];
          s = fast_exp2(s * scale - base[i % 4 / 2]);
          h.sum[m][i % 4 / 2] += s;
        }
        MOEBIUS_UNROLL
        for (int i = 0; i < 8 * kValue; ++i) h.o[m][i / 4][i % 4] *= h.shrink[m][i % 4 / 2];
      }
    });
  }

  MOEBIUS_DEVICE void add_values(const Warp& warp, const Tiles& t, PerThread<Held>& held) const {
    multiply_tile<MatrixOrder::kTransposed, kValueStride, kM, kValue, kKeys / 16>(
        warp, t.v,
        [&](int m, int i, PerThread<FourWords>& w) {
          warp.lanes([&](int thread, int) {
            w[thread] = left_of_sums(held[thread].score[m][2 * i], held[thread].score[m][2 * i + 1]);
          });
        },
        [&](int thread, int m, int n) { return held[thread].o[m][n]; });
  }

  MOEBIUS_DEVICE void end(const Warp& warp, int first_row, int first, int head, PerThread<Held>& held) const {
    MOEBIUS_UNROLL
    for (int row = 0; row < 2 * kM; ++row)
      warp.join_rows([&](int thread) -> float& { return held[thread].sum[row / 2][row % 2]; },
                     [](float x, float y) { return x + y; });
    warp.lanes([&](int thread, int lane) {
      const Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int m = 0; m < kM; ++m) {
        MOEBIUS_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int row = first + m * kFragmentRows + c_row(lane, 2 * half);
          if (row >= sight.queries) continue;
          const float sum = h.sum[m][half], part = 1 / sum;
          const RowOut out(o, first_row + row, head * a.v_dim + c_column(lane, 0));
          const int width = static_cast<int>(a.v_dim);
          MOEBIUS_UNROLL
          for (int n = 0; n < 2 * kValue; ++n) {
            if (n * kFragmentColumns < width)
              out.store(n * kFragmentColumns, h.o[m][n][2 * half] * part, h.o[m][n][2 * half + 1] * part);
          }
          if (lane % 4 == 0)
            store(lse, std::int64_t{first_row + row} * a.heads + head,
                  h.maximum[m][half] * scale * kLn2 + logf(sum));
        }
      }
    });
  }
};

}  // namespace

bool flash_takes(const Attention& a) {
  return a.q.storage == Storage::kBf16 && a.k.storage == Storage::kBf16 && a.v.storage == Storage::kBf16 &&
         a.head_dim % 16 == 0 && a.v_dim % 16 == 0 && a.head_dim <= 16 * kHeadFragments &&
         a.v_dim <= 16 * kValueFragments && a.heads % a.kv_heads == 0 && a.score_scale > 0 &&
         a.q.rows < kMostRows && a.k.rows < kMostRows &&
         with_widths<FlashForward>(a, [](auto kernel) { return decltype(kernel)::type::kScratch; }) <=
             widest_scratch();
}

void flash_attention(Stream stream, const Attention& a, const Operand& o, const Operand& lse) {
  CHECK(flash_takes(a) && a.q.rows == a.sequences * a.queries && a.queries <= a.keys && a.chunk > 0 &&
            a.sequences * a.keys <= a.k.rows,
        "attention that tensor cores do not take");
  const auto scale = static_cast<float>(score_scale(a) * kLog2E);
  with_widths<FlashForward>(a, [&](auto kernel) {
    using Kernel = typename decltype(kernel)::type;
    const std::int64_t of_kv_head = 2 * a.k.rows * (a.head_dim + a.v_dim);
    const FlashOrder order(a, tiles_of(a.queries, Kernel::kQueries), a.heads,
                           of_kv_head * a.kv_heads / a.heads);
    launch_warp_teams(stream, order.teams(), Kernel{a, o, lse, Sight(a), scale, order});
  });
}

}  // namespace moebius::cuda
