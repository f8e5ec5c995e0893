// Rows that follow a route, and sums over the members of a group.
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

struct GatherRow {
  Operand x, y;
  const std::int32_t* rows;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t i) const {
    if (y.storage == Storage::kFp8Rows) return copy_codes(team, x, rows[i], y, i);
    team.each(x.columns, [&](std::int64_t c) { store(y, i * x.columns + c, load(x, rows[i], c)); });
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
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t i) const {
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

struct GatherWeight {
  SentWeights s;
  Operand y;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t token = s.rows[i / y.columns], slot = i % y.columns;
    const std::int32_t expert = s.choices[token * y.columns + slot];  // below 0: dropped
    const bool there = expert >= 0 && expert / s.experts_per_rank == s.member;
    store(y, i, there ? load(s.weights, token, slot) : 0.0f);
  }
};

struct SumByToken {
  Pieces p;
  const std::int32_t* position;
  Operand y;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t token) const {
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
  launch_teams(stream, y.rows, GatherRow{x, y, rows});
}

void gather_slots(Stream stream, const Operand& x, const std::int32_t* rows, const std::int32_t* slots,
                  const Operand& y) {
  launch_elements(stream, y.rows, GatherSlot{x, y, rows, slots});
}

void sum_rows(Stream stream, const Operand& x, const std::int32_t* parts, std::int64_t width,
              const Operand& y) {
  launch_teams(stream, y.rows, SumRows{x, y, parts, width});
}

void scatter_slots(Stream stream, const Operand& x, const std::int32_t* from, const Operand& y) {
  launch_elements(stream, y.elements(), ScatterSlot{x, y, from});
}

void gather_weights(Stream stream, const SentWeights& sent, const Operand& y) {
  launch_elements(stream, y.elements(), GatherWeight{sent, y});
}

void sum_by_token(Stream stream, const Pieces& pieces, const std::int32_t* position, const Operand& y) {
  launch_teams(stream, y.rows, SumByToken{pieces, position, y});
}

void sum_flat(Stream stream, const Pieces& pieces, const Operand& y, std::int64_t y_first,
              std::int64_t count) {
  launch_elements(stream, count, SumFlat{pieces, y, y_first});
}

}  // namespace moebius::cuda
