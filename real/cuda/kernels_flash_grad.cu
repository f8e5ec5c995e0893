// Gradients of causal attention on tensor cores, in two passes, so that every sum has one owner and one
// order: dq by teams of 128 queries that go through the keys, dk and dv by teams of 128 keys that go through
// the queries of heads that share them. Both compute the exponentials p = exp(score - lse) again, and with
// them ds = p * (do * v - D); p and ds are rounded to BF16 for the products that they weigh. The next tile
// arrives while a tile is worked on.
#include "hw/error.h"
#include "real/cuda/flash_query_grad.cuh"

namespace moebius::cuda {
namespace {

// Scores stand the other way round here, [key][query], so that p and ds are first operands as they are. A
// team takes some of the heads that share its keys; where these are not all, sum_parts() adds up what they
// leave.
template <int kHead, int kValue>
struct FlashKeyGrad {
  static constexpr int kWarps = 8, kBlocks = 1, kKeys = kWarps * kFragmentRows;
  static constexpr int kQueries = kHead > 8 ? 32 : 64, kColumns = kQueries / kFragmentColumns;
  static constexpr int kHeadStride = stride_of(kHead), kValueStride = stride_of(kValue);
  static constexpr int kQueryWords = kQueries * (kHeadStride + kValueStride + 2);  // of q, do, lse and D
  static constexpr int kScratch = kKeys * (kHeadStride + kValueStride) + 2 * kQueryWords;
  static_assert(RowNumbers::kTile % kQueries == 0);
  using Team = WarpTeam<kWarps>;

  Attention a;
  Operand d_o, dk, dv;  // dk and dv of one part below those of the other
  Sight sight;
  RowNumbers numbers;
  float score_scale;
  FlashOrder order;  // of kv_heads * parts
  int parts, tiles_of_chunk;

  struct Held {
    float dk[2 * kHead][4], dv[2 * kValue][4];
    float score[kColumns][4], dp[kColumns][4];
  };
  struct Tiles {
    SharedWords k, v, q, d_o;
    const float *lse, *dot;
  };
  // Keys of one chunk stand one below the other: those of a tile.
  struct Keys {
    int first, row, count;
  };
  struct alignas(8) Two {
    float of[2];
  };
  // A tile of queries of a head.
  struct Step {
    int head, query;
  };

  // Earlier keys are seen by more queries.
  MOEBIUS_DEVICE void operator()(const Team& team, int item) const {
    const FlashPlace at = order.place(item);
    const int chunk = at.tile / tiles_of_chunk, within = at.tile % tiles_of_chunk * kKeys;
    const Keys keys{chunk * sight.chunk + within,
                    (chunk * sight.sequences + at.sequence) * sight.chunk + within,
                    sight.chunk - within < kKeys ? sight.chunk - within : kKeys};
    const int kv_head = at.head / parts, part = at.head % parts;
    // Query i stands at position keys - queries + i.
    const int before = sight.keys - sight.queries;
    const int first = (keys.first > before ? keys.first - before : 0) / kQueries * kQueries;
    int last = keys.first < sight.keys ? sight.queries : 0;
    const int beyond = keys.first + keys.count - 1 + sight.window - before;
    if (sight.window > 0 && beyond < last) last = beyond;
    const int share = static_cast<int>(a.heads / a.kv_heads) / parts;
    const int end_head = (at.head + 1) * share;
    Step step{at.head * share, first};

    PerThread<Held> held;
    team.each_warp([&](const Warp& warp) { begin(warp, held); });
    if (first < last) {
      const SharedWords scratch(team.scratch());
      const SharedWords k = scratch, v = scratch + kKeys * kHeadStride;
      copy_rows<kKeys, kHead>(team, head_stripe(a.k, kv_head, a.head_dim), keys.row, keys.count, k);
      copy_rows<kKeys, kValue>(team, head_stripe(a.v, kv_head, a.v_dim), keys.row, keys.count, v);
      copy(team, at.sequence, step, tiles(team, 0));
      for (int odd = 0; step.head < end_head; odd ^= 1) {
        team.wait();
        team.sync();
        const Step next = step.query + kQueries < last ? Step{step.head, step.query + kQueries}
                                                       : Step{step.head + 1, first};
        if (next.head < end_head) copy(team, at.sequence, next, tiles(team, odd ^ 1));
        const Tiles t = tiles(team, odd);
        team.each_warp([&](const Warp& warp) {
          const int key = keys.first + warp.index() * kFragmentRows;
          if (!sees(sight, step.query, kQueries, key, kFragmentRows)) return;
          score(warp, t, held);
          if (!sees_all(sight, step.query, kQueries, key, kFragmentRows)) mask(warp, step.query, key, held);
          differentiate(warp, t, held);
          add_queries(warp, t, held);
        });
        step = next;
      }
    }
    team.each_warp([&](const Warp& warp) { end(warp, keys, kv_head, part, held); });
  }

  MOEBIUS_DEVICE Tiles tiles(const Team& team, int odd) const {
    constexpr int kOfKeys = kKeys * (kHeadStride + kValueStride);
    const SharedWords scratch(team.scratch());
    const int q = kOfKeys + odd * kQueryWords, lse = q + kQueries * (kHeadStride + kValueStride);
    return {scratch,
            scratch + kKeys * kHeadStride,
            scratch + q,
            scratch + (q + kQueries * kHeadStride),
            team.scratch() + lse,
            team.scratch() + (lse + kQueries)};
  }

  MOEBIUS_DEVICE void copy(const Team& team, int sequence, const Step& step, const Tiles& t) const {
    const int row = sequence * sight.queries + step.query, count = sight.queries - step.query;
    copy_rows<kQueries, kHead>(team, head_stripe(a.q, step.head, a.head_dim), row, count, t.q);
    copy_rows<kQueries, kValue>(team, head_stripe(d_o, step.head, a.v_dim), row, count, t.d_o);
    const std::int64_t first = (std::int64_t{sequence} * a.heads + step.head) * numbers.stride + step.query;
    team.each_thread([&](int thread) {
      constexpr int kCopies = kQueries / 4;
      const int at = thread % kCopies * 4;
      if (thread < kCopies) team.copy(SharedWords(t.lse) + at, numbers.lse + first + at, true);
      if (thread >= kCopies && thread < 2 * kCopies)
        team.copy(SharedWords(t.dot) + at, numbers.dot + first + at, true);
    });
  }

  MOEBIUS_DEVICE void begin(const Warp& warp, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int) {
      MOEBIUS_UNROLL
      for (int i = 0; i < 8 * kHead; ++i) held[thread].dk[i / 4][i % 4] = 0;
      MOEBIUS_UNROLL
      for (int i = 0; i < 8 * kValue; ++i) held[thread].dv[i / 4][i % 4] = 0;
    });
  }

  MOEBIUS_DEVICE void score(const Warp& warp, const Tiles& t, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int) {
      MOEBIUS_UNROLL
      for (int i = 0; i < 4 * kColumns; ++i)
        held[thread].score[i / 4][i % 4] = held[thread].dp[i / 4][i % 4] = 0;
    });
    const int row = warp.index() * kFragmentRows;
    multiply_tile<MatrixOrder::kRows, kHeadStride, 1, kColumns / 2, kHead>(
        warp, t.q, [&](int, int i, PerThread<FourWords>& w) { load_left<kHeadStride>(warp, t.k, row, i, w); },
        [&](int thread, int, int n) { return held[thread].score[n]; });
    multiply_tile<MatrixOrder::kRows, kValueStride, 1, kColumns / 2, kValue>(
        warp, t.d_o,
        [&](int, int i, PerThread<FourWords>& w) { load_left<kValueStride>(warp, t.v, row, i, w); },
        [&](int thread, int, int n) { return held[thread].dp[n]; });
  }

  MOEBIUS_DEVICE void mask(const Warp& warp, int query, int first_key, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int lane) {
      MOEBIUS_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int key = first_key + c_row(lane, 2 * half);
        MOEBIUS_UNROLL
        for (int i = 0; i < 2 * kColumns; ++i) {
          const int row = query + i / 2 * kFragmentColumns + c_column(lane, i % 2);
          if (key < sight.first_seen(row) || key >= sight.last_seen(row))
            held[thread].score[i / 2][2 * half + i % 2] = -INFINITY;
        }
      }
    });
  }

  // Scores become p, and dp becomes ds.
  MOEBIUS_DEVICE void differentiate(const Warp& warp, const Tiles& t, PerThread<Held>& held) const {
    warp.lanes([&](int thread, int lane) {
      Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int n = 0; n < kColumns; ++n) {
        const int query = n * kFragmentColumns + c_column(lane, 0);
        const Two lse = *reinterpret_cast<const Two*>(t.lse + query);
        const Two dot = *reinterpret_cast<const Two*>(t.dot + query);
        MOEBIUS_UNROLL
        for (int r = 0; r < 4; ++r) {
          float &s = h.score[n][r], &dp = h.dp[n][r];
          s = fast_exp2(s * (score_scale * kLog2E) - lse.of[r % 2]);
          dp = s * (dp - dot.of[r % 2]);
        }
      }
    });
  }

  MOEBIUS_DEVICE void add_queries(const Warp& warp, const Tiles& t, PerThread<Held>& held) const {
    multiply_tile<MatrixOrder::kTransposed, kValueStride, 1, kValue, kQueries / 16>(
        warp, t.d_o,
        [&](int, int i, PerThread<FourWords>& w) {
          warp.lanes([&](int thread, int) {
            w[thread] = left_of_sums(held[thread].score[2 * i], held[thread].score[2 * i + 1]);
          });
        },
        [&](int thread, int, int n) { return held[thread].dv[n]; });
    multiply_tile<MatrixOrder::kTransposed, kHeadStride, 1, kHead, kQueries / 16>(
        warp, t.q,
        [&](int, int i, PerThread<FourWords>& w) {
          warp.lanes([&](int thread, int) {
            w[thread] = left_of_sums(held[thread].dp[2 * i], held[thread].dp[2 * i + 1]);
          });
        },
        [&](int thread, int, int n) { return held[thread].dk[n]; });
  }

  MOEBIUS_DEVICE void end(const Warp& warp, const Keys& keys, int kv_head, int part,
                          PerThread<Held>& held) const {
    warp.lanes([&](int thread, int lane) {
      const Held& h = held[thread];
      MOEBIUS_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int key = warp.index() * kFragmentRows + c_row(lane, 2 * half);
        if (key >= keys.count) continue;
        const std::int64_t row = part * a.k.rows + keys.row + key;
        const RowOut dk_row(dk, row, kv_head * a.head_dim + c_column(lane, 0)),
            dv_row(dv, row, kv_head * a.v_dim + c_column(lane, 0));
        const int head_width = static_cast<int>(a.head_dim), value_width = static_cast<int>(a.v_dim);
        MOEBIUS_UNROLL
        for (int n = 0; n < 2 * kHead; ++n) {
          if (n * kFragmentColumns < head_width)
            dk_row.store(n * kFragmentColumns, h.dk[n][2 * half] * score_scale,
                         h.dk[n][2 * half + 1] * score_scale);
        }
        MOEBIUS_UNROLL
        for (int n = 0; n < 2 * kValue; ++n) {
          if (n * kFragmentColumns < value_width)
            dv_row.store(n * kFragmentColumns, h.dv[n][2 * half], h.dv[n][2 * half + 1]);
        }
      }
    });
  }
};

// y = the sum of all parts, in their order, four columns at a time.
struct SumParts {
  const float* x;
  Operand y;
  std::int64_t elements;
  int parts;

  struct alignas(16) FourFloats {
    float x[4];
  };
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    FourFloats sum{};
    for (int part = 0; part < parts; ++part) {
      const FourFloats add = *reinterpret_cast<const FourFloats*>(x + part * elements + 4 * i);
      MOEBIUS_UNROLL
      for (int c = 0; c < 4; ++c) sum.x[c] += add.x[c];
    }
    const RowOut out(y, 0, 4 * i);
    out.store(0, sum.x[0], sum.x[1]);
    out.store(2, sum.x[2], sum.x[3]);
  }
};

constexpr std::int64_t kTileOfKeys = FlashKeyGrad<4, 4>::kKeys;
constexpr std::int64_t kEnoughTeams = 256;  // two for each multiprocessor

std::int64_t key_tiles(const Attention& a) {
  return a.k.rows / a.chunk / a.sequences * tiles_of(a.chunk, kTileOfKeys);
}

// How many parts the query heads of a head of keys are split into, each for teams of its own.
std::int64_t parts_of(const Attention& a) {
  const std::int64_t share = a.heads / a.kv_heads, teams = a.sequences * key_tiles(a) * a.kv_heads;
  std::int64_t parts = 1;
  while (parts < share && (share % parts != 0 || parts * teams < kEnoughTeams)) ++parts;
  return parts;
}

// Numbers of the workspace: lse and D of all queries, and what each part sums up.
struct Workspace {
  std::int64_t stride, rows, parts, dk, dv;

  explicit Workspace(const Attention& a)
      : stride(tiles_of(a.queries, RowNumbers::kTile) * RowNumbers::kTile),
        rows(a.sequences * a.heads * stride),
        parts(parts_of(a)),
        dk(a.k.rows * a.kv_heads * a.head_dim),
        dv(a.k.rows * a.kv_heads * a.v_dim) {}
  std::int64_t numbers() const { return 2 * rows + (parts > 1 ? parts * (dk + dv) : 0); }
};

Operand part_sums(float* data, const Operand& y, std::int64_t parts) {
  return {.data = data, .rows = parts * y.rows, .columns = y.columns, .storage = Storage::kFp32};
}

}  // namespace

bool flash_grad_takes(const Attention& a, const AttentionGrad& g) {
  const auto scratch = [](auto kernel) { return decltype(kernel)::type::kScratch; };
  return flash_takes(a) && g.d_o.storage == Storage::kBf16 && g.o.storage == Storage::kBf16 && a.chunk > 0 &&
         std::max(with_widths<FlashQueryGrad>(a, scratch), with_widths<FlashKeyGrad>(a, scratch)) <=
             widest_scratch();
}

std::int64_t flash_grad_workspace(const Attention& a) {
  return Workspace(a).numbers();
}

void flash_attention_grad(Stream stream, const Attention& a, const AttentionGrad& g) {
  const Workspace room(a);
  CHECK(flash_grad_takes(a, g) && a.k.rows % a.chunk == 0 && g.workspace.elements() >= room.numbers(),
        "attention that tensor cores do not take");
  const auto scale = static_cast<float>(score_scale(a));
  const Sight sight(a);
  auto* space = static_cast<float*>(g.workspace.data);
  const RowNumbers numbers{space, space + room.rows, static_cast<int>(room.stride)};
  const auto tiles = static_cast<int>(room.stride / RowNumbers::kTile);
  launch_warp_teams(stream, a.sequences * tiles * a.heads, FlashDots{a, g, numbers, tiles});

  const std::int64_t width = 2 * (a.head_dim + a.v_dim);  // bytes of a row
  with_widths<FlashQueryGrad>(a, [&](auto kernel) {
    using Kernel = typename decltype(kernel)::type;
    const FlashOrder order(a, tiles_of(a.queries, Kernel::kQueries), a.heads,
                           width * a.k.rows * a.kv_heads / a.heads);
    launch_warp_teams(stream, order.teams(), Kernel{a, g, sight, numbers, scale, order});
  });
  const auto parts = static_cast<int>(room.parts);
  float* sums = space + 2 * room.rows;
  const Operand dk = parts > 1 ? part_sums(sums, g.dk, parts) : g.dk;
  const Operand dv = parts > 1 ? part_sums(sums + parts * room.dk, g.dv, parts) : g.dv;
  with_widths<FlashKeyGrad>(a, [&](auto kernel) {
    using Kernel = typename decltype(kernel)::type;
    const std::int64_t heads = a.kv_heads * parts;
    const FlashOrder order(a, key_tiles(a), heads, width * a.q.rows * a.heads / heads);
    launch_warp_teams(stream, order.teams(),
                      Kernel{a, g.d_o, dk, dv, sight, numbers, scale, order, parts,
                             static_cast<int>(tiles_of(a.chunk, kTileOfKeys))});
  });
  if (parts == 1) return;
  launch_elements(stream, room.dk / 4, SumParts{sums, g.dk, room.dk, parts});
  launch_elements(stream, room.dv / 4, SumParts{sums + parts * room.dk, g.dv, room.dv, parts});
}

}  // namespace moebius::cuda
