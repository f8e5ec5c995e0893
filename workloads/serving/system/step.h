// An iteration of serving as a policy sees it: how much work, not which ops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "hw/units.h"

namespace moebius {

// One attention replica's part of an iteration.
struct StepShape {
  std::int64_t prefill_tokens = 0;  // of prompts
  std::int64_t prefill_pairs = 0;   // of a prompt's token and a token that it attends to, itself included
  std::int32_t prefill_sequences = 0;
  std::int32_t decode_sequences = 0;
  std::int64_t decode_context = 0;  // tokens that they attend to, all together
  std::int32_t decode_tokens = 0;   // rows of decoding sequences; more than one each with drafts
  std::int32_t changes = 0;         // sequences that came, went or got pages since the iteration before
  std::int64_t swapped_out = 0, swapped_in = 0;  // tokens whose keys go to the host's memory and back, first
  std::int64_t padding = 0;                      // rows among those above that belong to no token
  std::int32_t fillers = 0;  // of decoding sequences: those of nobody that fill a graph and choose experts
  std::int32_t images = 0;   // to be encoded before the prompts that begin in it
  // Decoding that no captured graph has room for: its kernels are launched one by one.
  bool eager = false;
  std::int64_t prefill_past = 0;  // tokens in the cache before the prompts' own, all together
  bool absorbed = false;          // those read latents by absorbed maps, see LatentRule

  std::int64_t rows() const { return prefill_tokens + decode_tokens; }
  bool empty() const { return rows() == 0; }
};

// Copied from where many are emptied: a processor fills so few bytes with zeros more slowly than it copies
// them.
inline constexpr StepShape kNoStep{};

// Of an iteration, all replicas together.
struct StepSums {
  std::int64_t rows = 0, most_rows = 0;                // most: of the fullest replica
  std::int64_t prompts = 0, decodes = 0, padding = 0;  // of `rows`
  std::int64_t sequences = 0;
  std::int64_t most_swapped = 0;  // tokens of the replica that swaps most, out or in
  explicit StepSums(std::span<const StepShape> replicas = {}) {
    for (const StepShape& shape : replicas) {
      rows += shape.rows();
      most_rows = std::max(most_rows, shape.rows());
      prompts += shape.prefill_tokens;
      decodes += shape.decode_tokens;
      padding += shape.padding;
      sequences += shape.prefill_sequences + shape.decode_sequences;
      most_swapped = std::max({most_swapped, shape.swapped_out, shape.swapped_in});
    }
  }
};

// Seconds of an iteration by which it is longer than it would be, by cause.
struct StepStalls {
  double barrier = 0;  // were rows spread evenly over the replicas: the others wait for the fullest one
  double experts = 0;  // were ranks loaded evenly, by experts of which each has as uneven ones
  double moves = 0;    // did no weights move beside it
  void add(const StepStalls& other, double times) {
    barrier += other.barrier * times;
    experts += other.experts * times;
    moves += other.moves * times;
  }
};

// What an iteration takes: the replicas go through its layers in step where they share experts.
class StepCost {
 public:
  virtual ~StepCost() = default;
  // Said before an iteration that begins then, never back in time; for costs that change while a service
  // runs. `gives_tokens`: some come of it; otherwise what comes next need not wait for its last layer.
  virtual void begin(Time, bool /*gives_tokens*/) {}
  // When the device begins with it: then, or later where the host is not done.
  virtual void starts(Time) {}
  // Seconds on the device, from the first op to the next tokens; some replica has rows.
  virtual double seconds(std::span<const StepShape> replicas) = 0;
  // Of the iteration that was asked for last, which takes `seconds`.
  virtual StepStalls stalls(std::span<const StepShape>, double) { return {}; }
  // Of experts at the moment: mean over fullest rank.
  virtual double balancedness() const { return 1; }
  // The same of an iteration that nobody carries out: somebody wants to know what it would take.
  virtual double forecast(std::span<const StepShape> replicas) { return seconds(replicas); }
};

}  // namespace moebius
