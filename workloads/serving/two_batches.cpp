#include "workloads/serving/two_batches.h"

#include <algorithm>
#include <memory>

#include "workloads/serving/decode_stages.h"

namespace moebius {
namespace {

constexpr double kLeastShare = 0.48;  // github.com/sgl-project/sglang, server_args.py, release 0.4.7

std::pair<Batch, Batch> cut_at(const Batch& batch, std::int64_t row) {
  std::pair<Batch, Batch> halves{{batch.page_tokens, {}}, {batch.page_tokens, {}}};
  for (const BatchSequence& s : batch.sequences) {
    const auto head = static_cast<std::int32_t>(std::clamp<std::int64_t>(row, 0, s.count));
    row -= head;
    BatchSequence part = s;
    if (head > 0) part.count = head, halves.first.sequences.push_back(part);
    if (head == s.count) continue;
    part.past = s.past + head, part.count = s.count - head;
    halves.second.sequences.push_back(std::move(part));
  }
  return halves;
}

// The end of a sequence that is nearest to the middle.
std::int64_t nearest_end(const Batch& batch) {
  const std::int64_t rows = batch.rows();
  std::int64_t best = rows, at = 0;
  for (const BatchSequence& s : batch.sequences) {
    at += s.count;
    if (std::abs(2 * at - rows) < std::abs(2 * best - rows)) best = at;
  }
  return best;
}

}  // namespace

std::optional<HalfBatches> halves_of(const std::vector<BatchPtr>& batches) {
  HalfBatches halves;
  const Batch* known = nullptr;  // replicas that do the same share their batch
  for (const BatchPtr& batch : batches) {
    if (batch.get() == known) {
      halves.first.push_back(halves.first.back());
      halves.second.push_back(halves.second.back());
      continue;
    }
    known = batch.get();
    const std::int64_t rows = batch->rows(), end = nearest_end(*batch);
    if (rows < 2) return std::nullopt;
    const auto least = static_cast<double>(std::min(end, rows - end));
    const auto [first, second] =
        cut_at(*batch, least >= kLeastShare * static_cast<double>(rows) ? end : rows / 2);
    halves.first.push_back(std::make_shared<const Batch>(first));
    halves.second.push_back(std::make_shared<const Batch>(second));
  }
  return halves;
}

FragmentPtr lower_two_batches(const FragmentPtr& first, const FragmentPtr& second, bool decodes) {
  if (!decodes) return overlap(*first, *second);
  return overlap({*first, decode_stages(*first)}, {*second, decode_stages(*second)}, kStagesBehind);
}

}  // namespace moebius
