#include "real/batch_tokens.h"

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

}  // namespace

std::vector<RowToken> row_tokens(const Batch& batch, std::uint64_t seed, std::int64_t vocabulary,
                                 std::int64_t columns) {
  std::vector<RowToken> rows;
  for (const BatchSequence& sequence : batch.sequences) {
    std::vector<std::int32_t> prompt(1, 0);  // of padding
    if (sequence.request >= 0 && sequence.past < sequence.prompt)
      prompt = token_sequence({seed, 0, sequence.request}, sequence.prompt, vocabulary);
    for (std::int32_t position = sequence.past; position < sequence.length(); ++position) {
      if (position < sequence.prompt) {
        rows.push_back({prompt[position], -1});
      } else {
        rows.push_back({0, place_of(sequence, position, columns)});
      }
    }
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
