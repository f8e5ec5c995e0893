#include "workloads/serving/separation/microbatches.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

// Tokens [first, last) of those that the iteration computes of a sequence, with the pages up to there.
BatchSequence stretch(const BatchSequence& whole, std::int64_t first, std::int64_t last, std::int32_t page) {
  BatchSequence part = whole;
  part.past = whole.past + static_cast<std::int32_t>(first);
  part.count = static_cast<std::int32_t>(last - first);
  if (page > 0) part.pages.resize((part.length() + page - 1) / page);
  return part;
}

// The first row of each part, and behind them the number of rows.
std::vector<std::int64_t> borders(const Batch& batch, int parts, PromptCut cut) {
  const std::int64_t rows = batch.rows();
  std::vector<std::int64_t> even;
  for (int i = 0; i <= parts; ++i) even.push_back(rows * i / parts);
  if (cut == PromptCut::kAnywhere) return even;
  const std::vector<std::int32_t> first = batch.first_rows();
  std::vector<std::int64_t> found(parts + 1, 0);
  std::size_t at = 0;  // the sequence that begins the next part
  for (int i = 1; i < parts; ++i) {
    const std::size_t least = at + 1, most = batch.sequences.size() - (parts - i);
    at = std::lower_bound(first.begin(), first.end(), even[i]) - first.begin();
    if (at > least && even[i] - first[at - 1] < first[at] - even[i]) --at;
    at = std::clamp(at, least, most);
    found[i] = first[at];
  }
  found[parts] = rows;
  return found;
}

}  // namespace

int parts_of(const Batch& batch, int wanted, PromptCut cut) {
  const std::int64_t most =
      cut == PromptCut::kAnywhere ? batch.rows() : static_cast<std::int64_t>(batch.sequences.size());
  return static_cast<int>(std::min<std::int64_t>(wanted, most));
}

std::vector<BatchPtr> split_batch(const Batch& batch, int parts, PromptCut cut) {
  CHECK(parts > 0 && parts <= parts_of(batch, parts, cut),
        fmt::format("{} parts of {} sequences", parts, batch.sequences.size()));
  const std::vector<std::int64_t> border = borders(batch, parts, cut);
  std::vector<BatchPtr> split;
  for (int i = 0; i < parts; ++i) {
    auto part = std::make_shared<Batch>();
    part->page_tokens = batch.page_tokens;
    std::int64_t row = 0;  // of the sequence at hand
    for (const BatchSequence& sequence : batch.sequences) {
      const std::int64_t first = std::max(border[i], row) - row,
                         last = std::min(border[i + 1] - row, std::int64_t{sequence.count});
      if (first < last) part->sequences.push_back(stretch(sequence, first, last, batch.page_tokens));
      row += sequence.count;
    }
    split.push_back(std::move(part));
  }
  return split;
}

}  // namespace moebius
