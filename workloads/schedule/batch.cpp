#include "workloads/schedule/batch.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace moebius {

std::int64_t Batch::rows() const {
  std::int64_t rows = 0;
  for (const BatchSequence& sequence : sequences) rows += sequence.count;
  return rows;
}

std::int64_t Batch::longest() const {
  std::int32_t longest = 0;
  for (const BatchSequence& sequence : sequences) longest = std::max(longest, sequence.length());
  return longest;
}

bool Batch::decodes() const {
  return std::all_of(sequences.begin(), sequences.end(), [](const BatchSequence& s) { return s.count == 1; });
}

std::vector<std::int32_t> Batch::first_rows() const {
  std::vector<std::int32_t> rows{0};
  for (const BatchSequence& sequence : sequences) rows.push_back(rows.back() + sequence.count);
  return rows;
}

std::vector<std::int32_t> Batch::positions() const {
  std::vector<std::int32_t> positions;
  for (const BatchSequence& sequence : sequences) {
    for (std::int32_t i = 0; i < sequence.count; ++i) positions.push_back(sequence.past + i);
  }
  return positions;
}

std::int64_t Batch::slot(const BatchSequence& sequence, std::int32_t position) const {
  return std::int64_t{sequence.pages[position / page_tokens]} * page_tokens + position % page_tokens;
}

std::vector<std::int32_t> Batch::slots() const {
  std::vector<std::int32_t> slots;
  for (const BatchSequence& sequence : sequences) {
    for (std::int32_t i = 0; i < sequence.count; ++i)
      slots.push_back(static_cast<std::int32_t>(slot(sequence, sequence.past + i)));
  }
  return slots;
}

std::vector<std::int32_t> Batch::states() const {
  std::vector<std::int32_t> states;
  for (const BatchSequence& sequence : sequences) states.push_back(sequence.state);
  return states;
}

std::string find_fault(const Batch& batch) {
  if (batch.page_tokens < 0 || batch.sequences.empty())
    return fmt::format("{} sequences, {} tokens a page", batch.sequences.size(), batch.page_tokens);
  std::int32_t most = -1;
  for (const BatchSequence& s : batch.sequences)
    for (const std::int32_t page : s.pages) most = std::max(most, page);
  // Pages are numbered from 0 on: of each, where it stands among those of a sequence.
  std::vector<std::int32_t> taken(static_cast<std::size_t>(most) + 1, -1);
  for (const BatchSequence& s : batch.sequences) {
    if (s.count < 1 || s.past < 0)
      return fmt::format("request {}: {} tokens after {}", s.request, s.count, s.past);
    if (batch.page_tokens == 0) {
      if (s.past > 0 || !s.pages.empty()) return fmt::format("request {}: a past without a cache", s.request);
      continue;
    }
    const auto room = static_cast<std::int64_t>(s.pages.size()) * batch.page_tokens;
    if (room < s.length())
      return fmt::format("request {}: {} tokens on {} pages", s.request, s.length(), s.pages.size());
    for (std::int32_t place = 0; place < static_cast<std::int32_t>(s.pages.size()); ++place) {
      const std::int32_t page = s.pages[place];
      if (page < 0 || (taken[page] >= 0 && taken[page] != place))
        return fmt::format("request {}: page {} is taken", s.request, page);
      taken[page] = place;
    }
  }
  return {};
}

}  // namespace moebius
