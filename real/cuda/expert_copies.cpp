#include "real/cuda/expert_copies.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "real/cuda/near_copy.h"

namespace moebius::cuda {
namespace {

// Blocks of scales begin anew with every expert.
std::int64_t scales_of_expert(const ExpertPlace& expert) {
  const Operand& x = expert.of;
  if (x.storage == Storage::kFp8Rows) return expert.rows * blocks_of(x.columns);
  CHECK(x.storage == Storage::kFp8Blocks && x.period == expert.rows,
        fmt::format("scales of {} rows for experts of {}", x.period, expert.rows));
  return blocks_of(expert.rows) * block_scale_stride(x.columns);
}

}  // namespace

std::vector<NcclPiece> pieces_of_expert(const ExpertPlace& expert) {
  const Operand& x = expert.of;
  const std::int64_t elements = expert.rows * x.columns;
  std::vector<NcclPiece> pieces{{byte_at(x, expert.number * elements), elements * element_size(x.storage)}};
  if (!is_scaled(x.storage)) return pieces;
  const std::int64_t scales = scales_of_expert(expert);
  pieces.push_back({x.scales + expert.number * scales, scales * static_cast<std::int64_t>(sizeof(float))});
  return pieces;
}

void copy_expert(DeviceOp& c, const ExpertPlace& from, int device, const ExpertPlace& to) {
  const std::vector<NcclPiece> source = pieces_of_expert(from), target = pieces_of_expert(to);
  CHECK(from.of.storage == to.of.storage && source.front().bytes == target.front().bytes,
        fmt::format("an expert of {} bytes for one of {}", source.front().bytes, target.front().bytes));
  for (std::size_t i = 0; i < source.size(); ++i)
    copy_between(c.stream(), {target[i].data, c.rank().device}, {source[i].data, device},
                 static_cast<std::size_t>(source[i].bytes));
}

}  // namespace moebius::cuda
