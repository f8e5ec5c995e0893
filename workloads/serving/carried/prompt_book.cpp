#include "workloads/serving/carried/prompt_book.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

PromptBook::PromptBook(const std::vector<TrafficRequest>& requests) {
  std::unordered_map<std::uint64_t, std::int32_t> names;
  for (const TrafficRequest& request : requests) {
    std::vector<std::int32_t>& blocks = blocks_.emplace_back();
    if (request.blocks.empty()) continue;
    CHECK(block_tokens_ == 0 || block_tokens_ == request.block_tokens,
          fmt::format("blocks of {} and of {} tokens", block_tokens_, request.block_tokens));
    block_tokens_ = static_cast<std::int32_t>(request.block_tokens);
    const auto whole = static_cast<std::size_t>(request.input_tokens / request.block_tokens);
    for (std::size_t i = 0; i < std::min(whole, request.blocks.size()); ++i) {
      const auto next = kBlocks + static_cast<std::int32_t>(names.size());
      blocks.push_back(names.try_emplace(request.blocks[i], next).first->second);
    }
  }
}

std::vector<NamedPiece> PromptBook::pieces(std::int32_t request, std::int32_t first,
                                           std::int32_t count) const {
  std::vector<NamedPiece> pieces;
  const std::int32_t end = first + count;
  if (request >= 0 && request < static_cast<std::int32_t>(blocks_.size())) {
    const std::vector<std::int32_t>& blocks = blocks_[request];
    const auto shared = static_cast<std::int32_t>(blocks.size()) * block_tokens_;
    while (first < std::min(end, shared)) {
      const std::int32_t block = first / block_tokens_;
      const std::int32_t next = std::min(end, (block + 1) * block_tokens_);
      pieces.push_back({blocks[block], first, next - first});
      first = next;
    }
  }
  if (first < end) pieces.push_back({request, first, end - first});
  return pieces;
}

}  // namespace moebius
