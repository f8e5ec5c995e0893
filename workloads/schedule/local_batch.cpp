#include "workloads/schedule/local_batch.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

// The tokens of a sequence from `position` on that share its block, seen from where the block begins.
BatchSequence in_block(const BatchSequence& s, std::int32_t position, std::int32_t chunk,
                       std::int32_t page_tokens) {
  const std::int32_t begin = position / chunk * chunk;
  const std::int32_t end = std::min(s.length(), begin + chunk);
  BatchSequence part = s;
  part.past = position - begin;
  part.count = end - position;
  if (page_tokens == 0) return part;
  part.pages.assign(s.pages.begin() + begin / page_tokens,
                    s.pages.begin() + (end + page_tokens - 1) / page_tokens);
  return part;
}

}  // namespace

BatchPtr local_batch(const BatchPtr& batch, std::int32_t chunk) {
  if (chunk == 0 || batch->longest() <= chunk) return batch;
  CHECK(batch->page_tokens == 0 || chunk % batch->page_tokens == 0,
        fmt::format("chunks of {} tokens, pages of {}", chunk, batch->page_tokens));
  Batch local{batch->page_tokens, {}};
  for (const BatchSequence& s : batch->sequences)
    for (std::int32_t position = s.past; position < s.length(); position += local.sequences.back().count)
      local.sequences.push_back(in_block(s, position, chunk, batch->page_tokens));
  return std::make_shared<const Batch>(std::move(local));
}

}  // namespace moebius
