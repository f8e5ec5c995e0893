// The sequences of one iteration of serving or of one microbatch on one rank, and where the paged cache holds
// them. Frozen with the fragment whose ops work on their tokens; it says which tokens those are, never what
// they are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace moebius {

struct BatchSequence {
  std::int32_t request = 0;         // -1: a padding token, of a rank that has nothing else to do
  std::int32_t prompt = 0;          // tokens of the request's prompt; what follows them was generated
  std::int32_t past = 0;            // tokens of it that the cache holds already
  std::int32_t count = 0;           // tokens of this iteration: positions past .. past + count - 1
  std::vector<std::int32_t> pages;  // page i of the sequence holds the positions from i * page_tokens
  std::int32_t state = 0;           // row of what delta networks keep of it; of a model without them any

  std::int32_t length() const { return past + count; }
};

struct Batch {
  std::int32_t page_tokens = 1;  // 0: nothing is cached (packed sequences of training)
  std::vector<BatchSequence> sequences;
  // Where ranks have cut the prompts among themselves (serving/cut_prompts.h): keys of all of the sequences,
  // past and new, whoever has their tokens; else 0.
  std::int64_t cut_keys = 0;

  std::int64_t rows() const;                     // tokens of all sequences
  std::int64_t longest() const;                  // tokens of the longest sequence, past and new
  bool decodes() const;                          // every sequence has one token
  std::vector<std::int32_t> first_rows() const;  // of each sequence, and behind them rows()
  std::vector<std::int32_t> positions() const;   // of each row in its sequence
  // The row of the cache for the position of a sequence, and for each row of the batch.
  std::int64_t slot(const BatchSequence& sequence, std::int32_t position) const;
  std::vector<std::int32_t> slots() const;
  std::vector<std::int32_t> states() const;  // of each sequence
};
using BatchPtr = std::shared_ptr<const Batch>;

// The first rule that it breaks; empty when it is sound: there are sequences, each with tokens and pages for
// all of its positions, and no page holds two sequences.
std::string find_fault(const Batch& batch);

}  // namespace moebius
