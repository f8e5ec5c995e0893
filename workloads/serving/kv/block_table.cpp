#include "workloads/serving/kv/block_table.h"

#include <bit>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::kv {

// Grows with what comes: of thousands of replicas most hold few blocks.
BlockTable::BlockTable() : cells_(1 << 6) { shift_ = 64 - std::countr_zero(cells_.size()); }

std::int32_t BlockTable::find(BlockHash hash) const {
  for (std::size_t at = home(hash);; at = after(at)) {
    const Cell& cell = cells_[at];
    if (cell.number < 0 || cell.hash == hash) return cell.number;
  }
}

bool BlockTable::insert(BlockHash hash, std::int32_t number) {
  if (3 * (size_ + 1) > 2 * static_cast<std::int64_t>(cells_.size())) grow();
  std::size_t at = home(hash);
  for (; cells_[at].number >= 0; at = after(at))
    if (cells_[at].hash == hash) return false;
  cells_[at] = {hash, number};
  ++size_;
  return true;
}

// Entries behind the gap move up as far as their homes let them, so that no probe ends too early.
void BlockTable::erase(BlockHash hash) {
  std::size_t gap = home(hash);
  while (cells_[gap].number >= 0 && cells_[gap].hash != hash) gap = after(gap);
  CHECK(cells_[gap].number >= 0, fmt::format("hash {:016x} is not in the table", hash));
  const std::size_t mask = cells_.size() - 1;
  for (std::size_t at = after(gap); cells_[at].number >= 0; at = after(at)) {
    const std::size_t distance = (at - home(cells_[at].hash)) & mask;
    if (distance < ((at - gap) & mask)) continue;
    cells_[gap] = cells_[at];
    gap = at;
  }
  cells_[gap].number = -1;
  --size_;
}

void BlockTable::grow() {
  std::vector<Cell> old(cells_.size() * 2);
  old.swap(cells_);
  --shift_;
  size_ = 0;
  for (const Cell& cell : old)
    if (cell.number >= 0) insert(cell.hash, cell.number);
}

}  // namespace moebius::kv
