#include "real/batch_tokens.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/token_stream.h"

namespace moebius {
namespace {

std::int64_t place_of(const BatchSequence& sequence, std::int32_t position, std::int64_t columns) {
  const std::int64_t index = position - sequence.prompt;
  CHECK(index < columns,
        fmt::format("token {} of request {}, {} are kept", index, sequence.request, columns));
  return sequence.request * columns + index;
}

// Of the positions from `past` to `end` of a prompt.
void add_prompt(const BatchSequence& sequence, std::int32_t end, const PromptSource& prompts,
                std::vector<RowToken>& rows) {
  if (sequence.request < 0) return rows.push_back({0, -1});  // padding
  static const PromptBook kNothingShared;
  const PromptBook& book = prompts.book == nullptr ? kNothingShared : *prompts.book;
  for (const NamedPiece& piece : book.pieces(sequence.request, sequence.past, end - sequence.past)) {
    const std::int32_t last = piece.first + piece.count;
    const auto tokens = token_sequence({prompts.seed, 0, piece.name}, last, prompts.vocabulary);
    for (std::int32_t position = piece.first; position < last; ++position)
      rows.push_back({tokens[position], -1});
  }
}

}  // namespace

std::vector<RowToken> row_tokens(const Batch& batch, const PromptSource& prompts, std::int64_t columns) {
  std::vector<RowToken> rows;
  for (const BatchSequence& sequence : batch.sequences) {
    const std::int32_t of_prompt = std::min(sequence.length(), sequence.prompt);
    if (sequence.past < of_prompt) add_prompt(sequence, of_prompt, prompts, rows);
    for (std::int32_t position = std::max(sequence.past, of_prompt); position < sequence.length(); ++position)
      rows.push_back({0, place_of(sequence, position, columns)});
  }
  return rows;
}

std::vector<std::int32_t> cached_rows(const Batch& batch) {
  std::vector<std::int32_t> rows;
  for (const BatchSequence& sequence : batch.sequences)
    for (std::int32_t position = 0; position < sequence.length(); ++position)
      rows.push_back(static_cast<std::int32_t>(batch.slot(sequence, position)));
  return rows;
}

std::vector<std::int64_t> next_places(const Batch& batch, std::int64_t columns) {
  std::vector<std::int64_t> places;
  for (const BatchSequence& sequence : batch.sequences) {
    const bool answers = sequence.request >= 0 && sequence.length() >= sequence.prompt;
    places.push_back(answers ? place_of(sequence, sequence.length(), columns) : -1);
  }
  return places;
}

}  // namespace moebius
