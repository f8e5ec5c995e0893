// What the rows of a batch mean in numbers, for all executors: prompts, and where generated tokens go.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedule/batch.h"
#include "workloads/serving/carried/prompt_book.h"

namespace moebius {

// The token of a row: of the prompt, or, at a place of the table of generated ones, of what came before.
struct RowToken {
  std::int32_t prompt = 0;  // used when place is negative
  std::int64_t place = -1;  // in generated[requests, columns], row by row
};

// Prompts are sequences of the seed's language (real/token_stream.h), one for each request, or, as far as the
// book says that requests begin alike, for each block.
struct PromptSource {
  std::uint64_t seed = 1;
  std::int64_t vocabulary = 0;
  const PromptBook* book = nullptr;  // null: none begin alike
};

// By row of the batch; so many tokens of a request are kept.
std::vector<RowToken> row_tokens(const Batch& batch, const PromptSource& prompts, std::int64_t columns);

// Rows of the cache of all tokens of each sequence, past and new, sequence by sequence.
std::vector<std::int32_t> cached_rows(const Batch& batch);

// By sequence: where the token that follows it belongs in generated[requests, columns]; -1: nowhere (padding,
// or not all of the prompt has been seen).
std::vector<std::int64_t> next_places(const Batch& batch, std::int64_t columns);

}  // namespace moebius
