#include "real/cuda/near_copy.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::cuda {
namespace {

void copy(DeviceOp& c, void* to, const void* from, int device, std::int64_t bytes) {
  if (bytes > 0)
    copy_between(c.stream(), {to, c.rank().device}, {const_cast<void*>(from), device},
                 static_cast<std::size_t>(bytes));
}

char* byte_at(const Operand& x, std::int64_t element) {
  return static_cast<char*>(x.data) + (x.first_row * x.columns + element) * element_size(x.storage);
}

}  // namespace

std::vector<int> devices_of_ranks(int ranks, int devices) {
  const std::int64_t used = std::min(ranks, devices);
  std::vector<int> of;
  for (int device = 0; device < used; ++device)
    of.resize(static_cast<std::size_t>((device + 1) * static_cast<std::int64_t>(ranks) / used), device);
  return of;
}

void bring(DeviceOp& c, const Operand& x, int from, const Operand& y) {
  CHECK(x.storage == y.storage && x.rows == y.rows && x.columns == y.columns,
        fmt::format("{} x {} into {} x {}", x.rows, x.columns, y.rows, y.columns));
  copy(c, byte_at(y, 0), byte_at(x, 0), from, x.elements() * element_size(x.storage));
  if (!is_scaled(x.storage)) return;
  const bool by_row = x.storage == Storage::kFp8Rows;
  CHECK(by_row || (x.first_row == 0 && y.first_row == 0), "rows of a matrix whose scales span rows");
  const std::int64_t width = by_row ? blocks_of(x.columns) : 0;
  copy(c, y.scales + y.first_row * width, x.scales + x.first_row * width, from,
       num_scales(x) * static_cast<std::int64_t>(sizeof(float)));
}

Operand brought(DeviceOp& c, const Operand& x, int from) {
  const Operand y = c.make(x.rows, x.columns, x.storage, x.period)->operand;
  bring(c, x, from, y);
  return y;
}

Operand brought_flat(DeviceOp& c, const Operand& x, int from, std::int64_t first, std::int64_t count) {
  CHECK(!is_scaled(x.storage), "elements of a matrix with scales");
  const Operand y = c.scratch(count, 1, x.storage);
  copy(c, y.data, byte_at(x, first), from, count * element_size(x.storage));
  return y;
}

}  // namespace moebius::cuda
