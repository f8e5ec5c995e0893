#include "workloads/serving/cut_prompts.h"

#include <algorithm>
#include <memory>

namespace moebius {
namespace {

// The piece of a sequence between the `from`-th and the next of `parts` cuts.
void add_piece(Batch& batch, const BatchSequence& s, std::int64_t from, std::int64_t parts) {
  const auto begin = static_cast<std::int32_t>(s.count * from / parts),
             end = static_cast<std::int32_t>(s.count * (from + 1) / parts);
  if (begin == end) return;
  BatchSequence piece = s;
  piece.past += begin;
  piece.count = end - begin;
  batch.sequences.push_back(std::move(piece));
}

BatchPtr cut_of_rank(const Batch& whole, int rank, int cp) {
  Batch batch{whole.page_tokens, {}};
  const std::int64_t parts = 2 * std::int64_t{cp};
  for (const BatchSequence& s : whole.sequences) {
    add_piece(batch, s, rank, parts);
    add_piece(batch, s, parts - 1 - rank, parts);
    batch.cut_keys += s.length();
  }
  if (batch.sequences.empty()) {
    batch.sequences.push_back(whole.sequences.front());
    batch.sequences.back().count = 1;
  }
  return std::make_shared<const Batch>(std::move(batch));
}

// Rows from `first` on.
BatchPtr run_of_rank(const Batch& whole, std::int64_t first, std::int64_t rows) {
  Batch batch{whole.page_tokens, {}};
  for (const BatchSequence& s : whole.sequences) {
    const auto begin = static_cast<std::int32_t>(std::clamp<std::int64_t>(first, 0, s.count)),
               end = static_cast<std::int32_t>(std::clamp<std::int64_t>(first + rows, 0, s.count));
    first -= s.count;
    batch.cut_keys += s.length();
    if (begin == end) continue;
    BatchSequence run = s;
    run.past += begin;
    run.count = end - begin;
    batch.sequences.push_back(std::move(run));
  }
  return std::make_shared<const Batch>(std::move(batch));
}

}  // namespace

std::vector<BatchPtr> cut_rows(const std::vector<BatchPtr>& of_replicas, int parts) {
  std::vector<BatchPtr> of_ranks;
  for (const BatchPtr& whole : of_replicas) {
    const std::int64_t rows = whole->rows(), share = rows_of_part(rows, parts);
    for (int rank = 0; rank < parts; ++rank)
      of_ranks.push_back(run_of_rank(*whole, std::min(rank * share, rows - share), share));
  }
  return of_ranks;
}

std::vector<BatchPtr> cut_prompts(const std::vector<BatchPtr>& of_replicas, int cp, CutAttention attend_by) {
  if (cp == 1) return of_replicas;
  if (attend_by == CutAttention::kHeads) return cut_rows(of_replicas, cp);
  std::vector<BatchPtr> of_ranks;
  for (const BatchPtr& whole : of_replicas)
    for (int rank = 0; rank < cp; ++rank) of_ranks.push_back(cut_of_rank(*whole, rank, cp));
  return of_ranks;
}

}  // namespace moebius
