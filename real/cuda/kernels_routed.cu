// Rows that follow a route, and sums over the members of a group.
#include "real/cuda/eight.cuh"
#include "real/cuda/kernels.h"
#include "real/cuda/launch.cuh"

namespace moebius::cuda {
namespace {

MOEBIUS_DEVICE void copy_codes(const Team& team, const Operand& x, std::int64_t from, const Operand& y,
                               std::int64_t to) {
  const auto* codes = static_cast<const std::uint8_t*>(x.data) + (x.first_row + from) * x.columns;
  auto* copies = static_cast<std::uint8_t*>(y.data) + (y.first_row + to) * y.columns;
  team.each(x.columns, [&](std::int64_t c) { copies[c] = codes[c]; });
  const float* scales = x.scales + scale_index(x, from, 0);
  float* scale_copies = y.scales + scale_index(y, to, 0);
  team.each(blocks_of(x.columns), [&](std::int64_t b) { scale_copies[b] = scales[b]; });
}

MOEBIUS_DEVICE void add_eight(Eight& sum, const Eight& more) {
  for (int i = 0; i < kEight; ++i) sum.of[i] += more.of[i];
}

// y[to] = x[from].
MOEBIUS_DEVICE void copy_row(const Team& team, const Operand& x, std::int64_t from, const Operand& y,
                             std::int64_t to) {
  if (y.storage == Storage::kFp8Rows) return copy_codes(team, x, from, y, to);
  team.each(x.columns, [&](std::int64_t c) { store(y, to * x.columns + c, load(x, from, c)); });
}

// Rows of eights, few enough to be counted in 32 bits.
bool gathers_in_eights(const Operand& x, const Operand& y) {
  return rows_in_eights(x) && rows_in_eights(y) && y.elements() / kEight < std::int64_t{1} << 31;
}

struct GatherRow {
  Operand x, y;
  const std::int32_t* rows;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t i) const { copy_row(team, x, rows[i], y, i); }
};

struct GatherRowEight {
  Operand x, y;
  const std::int32_t* rows;
  std::uint32_t of_row;  // eights
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const std::uint32_t row = static_cast<std::uint32_t>(i) / of_row,
                        at = static_cast<std::uint32_t>(i) % of_row;
    store_eight(y, i * kEight, load_eight(x, rows[row] * x.columns + at * kEight));
  }
};

// The source whose rows stand at row i of the result.
MOEBIUS_DEVICE int source_of(const GatheredPieces& p, std::int64_t i) {
  int source = 0;
  while (source + 1 < p.count && i >= p.first[source + 1]) ++source;
  return source;
}

struct GatherPieces {
  GatheredPieces p;
  Operand y;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t i) const {
    const int source = source_of(p, i);
    copy_row(team, p.of[source], p.rows[source][i - p.first[source]], y, i);
  }
};

struct GatherPiecesEight {
  GatheredPieces p;
  Operand y;
  std::uint32_t of_row;  // eights
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const std::uint32_t row = static_cast<std::uint32_t>(i) / of_row,
                        at = static_cast<std::uint32_t>(i) % of_row;
    const int source = source_of(p, row);
    const std::int64_t from = p.rows[source][row - p.first[source]];
    store_eight(y, i * kEight, load_eight(p.of[source], from * y.columns + at * kEight));
  }
};

struct GatherSlot {
  Operand x, y;
  const std::int32_t *rows, *slots;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const { store(y, i, load(x, rows[i], slots[i])); }
};

struct SumRows {
  Operand x, y;
  const std::int32_t* parts;
  std::int64_t width;
  bool eights;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t i) const {
    if (eights) {
      team.each(y.columns / kEight, [&](std::int64_t c) {
        Eight sum = {};
        for (std::int64_t j = 0; j < width; ++j) {
          const std::int32_t part = parts[i * width + j];
          if (part >= 0) add_eight(sum, load_eight(x, part * x.columns + c * kEight));
        }
        store_eight(y, i * y.columns + c * kEight, sum);
      });
      return;
    }
    team.each(y.columns, [&](std::int64_t c) {
      float sum = 0;
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int32_t part = parts[i * width + j];
        if (part >= 0) sum += load(x, part, c);
      }
      store(y, i * y.columns + c, sum);
    });
  }
};

struct ScatterSlot {
  Operand x, y;
  const std::int32_t* from;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const { store(y, i, from[i] < 0 ? 0.0f : load(x, from[i])); }
};

MOEBIUS_DEVICE float weight_sent(const SentWeights& s, std::int64_t token, std::int64_t slot) {
  const std::int32_t expert = s.choices[token * s.weights.columns + slot];  // below 0: dropped
  const bool there = expert >= 0 && expert / s.experts_per_rank == s.member;
  return there ? load(s.weights, token, slot) : 0.0f;
}

struct GatherWeight {
  SentWeights s;
  Operand y;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    store(y, i, weight_sent(s, s.rows[i / y.columns], i % y.columns));
  }
};

struct SumByToken {
  Pieces p;
  const std::int32_t* position;
  Operand y;
  bool eights;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t token) const {
    if (eights) {
      team.each(y.columns / kEight, [&](std::int64_t c) {
        Eight sum = {};
        for (int member = 0; member < p.count; ++member) {
          const std::int32_t at = position[member * y.rows + token];
          if (at >= 0)
            add_eight(sum, load_eight(p.of[member], (p.first[member] + at) * y.columns + c * kEight));
        }
        store_eight(y, token * y.columns + c * kEight, sum);
      });
      return;
    }
    team.each(y.columns, [&](std::int64_t c) {
      float sum = 0;
      for (int member = 0; member < p.count; ++member) {
        const std::int32_t at = position[member * y.rows + token];
        if (at >= 0) sum += load(p.of[member], p.first[member] + at, c);
      }
      store(y, token * y.columns + c, sum);
    });
  }
};

struct GatherPieceWeights {
  GatheredPieces p;
  PieceWeights w;
  Operand y;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i / y.columns;
    const int source = source_of(p, row);
    const SentWeights sent{p.of[source], nullptr, w.choices[source], w.experts_per_rank, w.member};
    store(y, i, weight_sent(sent, p.rows[source][row - p.first[source]], i % y.columns));
  }
};

struct SumFlatEight {
  Pieces p;
  Operand y;
  std::int64_t y_first;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    Eight sum = {};
    for (int member = 0; member < p.count; ++member)
      add_eight(sum, load_eight(p.of[member], p.first[member] + i * kEight));
    store_eight(y, y_first + i * kEight, sum);
  }
};

struct SumFlat {
  Pieces p;
  Operand y;
  std::int64_t y_first;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    float sum = 0;
    for (int member = 0; member < p.count; ++member) sum += load(p.of[member], p.first[member] + i);
    store(y, y_first + i, sum);
  }
};

}  // namespace

void gather_rows(Stream stream, const Operand& x, const std::int32_t* rows, const Operand& y) {
  if (!gathers_in_eights(x, y)) return launch_teams(stream, y.rows, GatherRow{x, y, rows});
  launch_elements(stream, y.elements() / kEight,
                  GatherRowEight{x, y, rows, static_cast<std::uint32_t>(y.columns / kEight)});
}

void gather_pieces(Stream stream, const GatheredPieces& pieces, const Operand& y) {
  bool eights = true;
  for (int source = 0; source < pieces.count; ++source)
    eights = eights && gathers_in_eights(pieces.of[source], y);
  if (!eights) return launch_teams(stream, y.rows, GatherPieces{pieces, y});
  launch_elements(stream, y.elements() / kEight,
                  GatherPiecesEight{pieces, y, static_cast<std::uint32_t>(y.columns / kEight)});
}

void gather_piece_weights(Stream stream, const GatheredPieces& pieces, const PieceWeights& weights,
                          const Operand& y) {
  launch_elements(stream, y.elements(), GatherPieceWeights{pieces, weights, y});
}

void gather_slots(Stream stream, const Operand& x, const std::int32_t* rows, const std::int32_t* slots,
                  const Operand& y) {
  launch_elements(stream, y.rows, GatherSlot{x, y, rows, slots});
}

void sum_rows(Stream stream, const Operand& x, const std::int32_t* parts, std::int64_t width,
              const Operand& y) {
  launch_teams(stream, y.rows, SumRows{x, y, parts, width, rows_in_eights(x) && rows_in_eights(y)});
}

void scatter_slots(Stream stream, const Operand& x, const std::int32_t* from, const Operand& y) {
  launch_elements(stream, y.elements(), ScatterSlot{x, y, from});
}

void gather_weights(Stream stream, const SentWeights& sent, const Operand& y) {
  launch_elements(stream, y.elements(), GatherWeight{sent, y});
}

void sum_by_token(Stream stream, const Pieces& pieces, const std::int32_t* position, const Operand& y) {
  bool eights = rows_in_eights(y);
  for (int member = 0; member < pieces.count; ++member)
    eights = eights && rows_in_eights(pieces.of[member]) && pieces.of[member].columns == y.columns;
  launch_teams(stream, y.rows, SumByToken{pieces, position, y, eights});
}

void sum_flat(Stream stream, const Pieces& pieces, const Operand& y, std::int64_t y_first,
              std::int64_t count) {
  bool eights = in_eights(y, y_first) && count % kEight == 0;
  for (int member = 0; member < pieces.count; ++member)
    eights = eights && in_eights(pieces.of[member], pieces.first[member]);
  if (eights) return launch_elements(stream, count / kEight, SumFlatEight{pieces, y, y_first});
  launch_elements(stream, count, SumFlat{pieces, y, y_first});
}

}  // namespace moebius::cuda
