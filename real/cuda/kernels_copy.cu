// Elements that move or change format.
#include "real/cuda/eight.cuh"
#include "real/cuda/kernels.h"
#include "real/cuda/launch.cuh"
#include "real/cuda/quantise.cuh"

namespace moebius::cuda {
namespace {

struct Convert {
  Operand x, y;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    store(y, index, load(x, index / x.columns, index % x.columns));
  }
};

struct ConvertEight {
  Operand x, y;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    store_eight(y, i * kEight, load_eight(x, i * kEight));
  }
};

MOEBIUS_DEVICE void put_code(const Operand& y, std::int64_t row, std::int64_t column, float value,
                             float scale) {
  static_cast<std::uint8_t*>(y.data)[(y.first_row + row) * y.columns + column] = code_of(value, scale);
}

struct QuantiseRow {
  Operand x, y;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    quantise_row(team, y, row, [&](std::int64_t c) { return load(x, row, c); });
  }
};

// One block of a column: 128 rows. Neighbouring threads have neighbouring columns.
struct QuantiseColumn {
  Operand x, y;
  MOEBIUS_DEVICE void operator()(std::int64_t block) const {
    const std::int64_t first = block / x.columns * kScaleBlock, column = block % x.columns;
    const std::int64_t last = x.rows - first < kScaleBlock ? x.rows : first + kScaleBlock;
    float largest = 0;
    for (std::int64_t row = first; row < last; ++row) largest = fmaxf(largest, fabsf(load(x, row, column)));
    const float scale = scale_of(largest);
    for (std::int64_t row = first; row < last; ++row) put_code(y, row, column, load(x, row, column), scale);
    y.scales[scale_index(y, first, column)] = scale;
  }
};

// One block of rows and columns, of `period` rows at a time.
struct QuantiseBlock {
  Operand x, y;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t block) const {
    const std::int64_t wide = blocks_of(x.columns), high = blocks_of(y.period);
    const std::int64_t line = block / wide % high * kScaleBlock, first = block % wide * kScaleBlock;
    const std::int64_t row = block / wide / high * y.period + line;
    const std::int64_t height = y.period - line < kScaleBlock ? y.period - line : kScaleBlock;
    const std::int64_t width = x.columns - first < kScaleBlock ? x.columns - first : kScaleBlock;
    const auto value = [&](std::int64_t i) { return load(x, row + i / width, first + i % width); };
    const float scale = scale_of(team.max(height * width, [&](std::int64_t i) { return fabsf(value(i)); }));
    team.each(height * width,
              [&](std::int64_t i) { put_code(y, row + i / width, first + i % width, value(i), scale); });
    team.each(1, [&](std::int64_t) { y.scales[scale_index(y, row, first)] = scale; });
  }
};

struct Add {
  Operand a, b, y;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t row = index / y.columns, column = index % y.columns;
    store(y, index, load(a, row, column) + load(b, row, column));
  }
};

struct AddEight {
  Operand a, b, y;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    Eight sum = load_eight(a, i * kEight);
    const Eight more = load_eight(b, i * kEight);
    for (int j = 0; j < kEight; ++j) sum.of[j] += more.of[j];
    store_eight(y, i * kEight, sum);
  }
};

struct CopyColumns {
  Columns c;
  Operand x, y;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t row = index / c.width, column = index % c.width;
    store(y, row * y.columns + c.y_first + column, load(x, row, c.x_first + column));
  }
};

struct CopyColumnsEight {
  Columns c;
  Operand x, y;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i * kEight / c.width, column = i * kEight % c.width;
    store_eight(y, row * y.columns + c.y_first + column, load_eight(x, row * x.columns + c.x_first + column));
  }
};

struct CopyFlatEight {
  Operand x, y;
  std::int64_t x_first, y_first;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    store_eight(y, y_first + i * kEight, load_eight(x, x_first + i * kEight));
  }
};

struct CopyFlat {
  Operand x, y;
  std::int64_t x_first, y_first;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const { store(y, y_first + i, load(x, x_first + i)); }
};

// kv holds [nope | v] of each head; a head's key is [nope | rope], the rope part being the same for all
// heads.
struct MlaKeys {
  LatentColumns d;
  Operand kv, rope, k, v;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t width = d.nope + d.rope + d.v;  // of a head, in k and v together
    const std::int64_t row = index / (d.heads * width), head = index / width % d.heads, c = index % width;
    const std::int64_t from = head * (d.nope + d.v), key = row * k.columns + head * (d.nope + d.rope);
    if (c < d.nope) {
      store(k, key + c, load(kv, row, from + c));
    } else if (c < d.nope + d.rope) {
      store(k, key + c, load(rope, row, c - d.nope));
    } else {
      const std::int64_t at = c - d.nope - d.rope;
      store(v, row * v.columns + head * d.v + at, load(kv, row, from + d.nope + at));
    }
  }
};

// One element of dkv, or after them of drope: a sum over heads, in their order.
struct MlaKeysGrad {
  LatentColumns d;
  Operand dk, dv, dkv, drope;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    if (index >= dkv.elements()) return rope_part(index - dkv.elements());
    const std::int64_t row = index / dkv.columns, column = index % dkv.columns;
    const std::int64_t head = column / (d.nope + d.v), c = column % (d.nope + d.v);
    store(dkv, index,
          c < d.nope ? load(dk, row, head * (d.nope + d.rope) + c) : load(dv, row, head * d.v + c - d.nope));
  }
  MOEBIUS_DEVICE void rope_part(std::int64_t index) const {
    const std::int64_t row = index / d.rope, c = index % d.rope;
    float sum = 0;
    for (std::int64_t head = 0; head < d.heads; ++head)
      sum += load(dk, row, head * (d.nope + d.rope) + d.nope + c);
    store(drope, index, sum);
  }
};

}  // namespace

void convert(Stream stream, const Operand& x, const Operand& y) {
  if (in_eights(x) && in_eights(y) && x.elements() % kEight == 0)
    return launch_elements(stream, x.elements() / kEight, ConvertEight{x, y});
  launch_elements(stream, x.elements(), Convert{x, y});
}

void quantise(Stream stream, const Operand& x, const Operand& y) {
  if (y.storage == Storage::kFp8Rows) {
    launch_teams(stream, x.rows, QuantiseRow{x, y});
  } else if (y.storage == Storage::kFp8Blocks) {
    const std::int64_t lines = x.rows == 0 ? 0 : x.rows / y.period * blocks_of(y.period);
    launch_teams(stream, lines * blocks_of(x.columns), QuantiseBlock{x, y});
  } else {
    launch_elements(stream, blocks_of(x.rows) * x.columns, QuantiseColumn{x, y});
  }
}

void add(Stream stream, const Operand& a, const Operand& b, const Operand& y) {
  if (in_eights(a) && in_eights(b) && in_eights(y) && y.elements() % kEight == 0)
    return launch_elements(stream, y.elements() / kEight, AddEight{a, b, y});
  launch_elements(stream, y.elements(), Add{a, b, y});
}

void copy_columns(Stream stream, const Columns& columns, const Operand& x, const Operand& y) {
  const bool eights = rows_in_eights(x) && rows_in_eights(y) && columns.width % kEight == 0 &&
                      columns.x_first % kEight == 0 && columns.y_first % kEight == 0;
  const std::int64_t count = x.rows * columns.width;
  if (eights) return launch_elements(stream, count / kEight, CopyColumnsEight{columns, x, y});
  launch_elements(stream, count, CopyColumns{columns, x, y});
}

void copy_flat(Stream stream, const Operand& x, std::int64_t x_first, const Operand& y, std::int64_t y_first,
               std::int64_t count) {
  if (in_eights(x, x_first) && in_eights(y, y_first) && count % kEight == 0)
    return launch_elements(stream, count / kEight, CopyFlatEight{x, y, x_first, y_first});
  launch_elements(stream, count, CopyFlat{x, y, x_first, y_first});
}

void mla_keys(Stream stream, const LatentColumns& columns, const Operand& kv, const Operand& rope,
              const Operand& k, const Operand& v) {
  launch_elements(stream, k.elements() + v.elements(), MlaKeys{columns, kv, rope, k, v});
}

void mla_keys_grad(Stream stream, const LatentColumns& columns, const Operand& dk, const Operand& dv,
                   const Operand& dkv, const Operand& drope) {
  launch_elements(stream, dkv.elements() + drope.elements(), MlaKeysGrad{columns, dk, dv, dkv, drope});
}

}  // namespace moebius::cuda
