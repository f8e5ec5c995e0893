// A tier of the key-value cache: a store of blocks of one size that are numbered, not named. The cache
// decides what stands in which block; a tier moves bytes in and out and says when it is done. Simulated tiers
// have the simulator's clock and leave the bytes alone; real ones (real/tiers, real/cuda) have the host's.
//
// Two transfers that touch the same bytes, of a block or of memory, are not ordered: wait for the first one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/units.h"

namespace moebius::kv {

enum class Direction { kRead, kWrite };  // out of the tier, into it

struct TierShape {
  std::int64_t block_bytes = 0;
  std::int64_t blocks = 0;
  int depth = 1;  // pieces in service at a time; the others wait
  // Writes begin at a multiple of it and end at one or at the end of the block: what a disk rewrites at once.
  std::int64_t write_grain = 1;
};

// A range of one block, in service as one operation: a whole block, or one layer's part of it.
struct Piece {
  std::int64_t block = 0;
  std::int64_t offset = 0, bytes = 0;  // within the block
  std::byte* memory = nullptr;         // read into or written from; stays until the transfer is done
};

struct BlockTransfer {
  Direction direction = Direction::kRead;
  std::vector<Piece> pieces;  // served in this order
  int priority = 0;           // higher ones go first among what waits; equal ones in the order of submission
};

using TransferId = std::int64_t;  // 0, 1, ... of one tier

enum class Outcome {
  kGood,
  kCancelled,  // some pieces may have moved all the same: a block that was written holds anything
  kFailed
};

struct TransferDone {
  TransferId id = 0;
  Outcome outcome = Outcome::kGood;
  Time submitted, start, end;  // start: of its first piece; of a transfer without one in service: end
  std::string failure;         // a sentence, when it failed; who cannot go on throws it as run_error
};

struct TierCounters {
  std::int64_t read_pieces = 0, written_pieces = 0;  // that moved; those of cancelled transfers too
  double read_bytes = 0, written_bytes = 0;
  Time busy;        // at least one piece was in service
  int deepest = 0;  // most pieces that were in service at a time
};

class Tier {
 public:
  virtual ~Tier() = default;
  virtual const TierShape& shape() const = 0;
  virtual std::string description()
      const = 0;  // for reports: what it is made of, and what it had to do without
  virtual Time now() const = 0;

  // At now(). A piece outside of the tier, an empty one or one without memory for its bytes (unless
  // simulated) is the caller's error (CHECK). A transfer without pieces is done at once.
  virtual TransferId submit(const BlockTransfer& transfer) = 0;
  // Takes back what waits; pieces in service come to their end first. False: it was done already. After true
  // the transfer is done as kCancelled, never as good.
  virtual bool cancel(TransferId transfer) = 0;
  // Goes on until at least one transfer is done or `until` is reached, and returns those done by then, by
  // end, then id. Nothing in flight: returns at once; a simulated clock has then come to `until`, unless that
  // is kForever. So `while (!(done = tier.wait(t)).empty())` takes all that is done by t.
  virtual std::vector<TransferDone> wait(Time until) = 0;
  // When to ask next, not later than anything is done: a simulated tier knows its next event, a real one says
  // now() while anything is in flight. kForever: nothing is.
  virtual Time next() const = 0;
  virtual TierCounters counters() const = 0;

  // Where a block stands, aligned for every other tier's transfers; null where it has no address (a disk).
  virtual std::byte* memory(std::int64_t block) = 0;
};

// CHECKs what submit() asks for; `with_memory`: pieces must have some.
void check_transfer(const TierShape& shape, const BlockTransfer& transfer, bool with_memory);

}  // namespace moebius::kv
