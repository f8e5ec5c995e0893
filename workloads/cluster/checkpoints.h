// When a job saves its state, what that costs, and what is left after a fault.
#pragma once

#include <cstdint>

#include "hw/units.h"

namespace moebius {

enum class CheckpointPolicy : std::uint8_t {
  kNone,
  kSync,    // the job stands still until storage has it
  kAsync,   // it stands still until host memory has it; storage gets it beside the steps
  kMemory,  // as kAsync, and a peer's memory has it too: what one node held survives its loss
};

enum class IntervalChoice : std::uint8_t { kGiven, kYoung, kDaly };

struct CheckpointPlan {
  CheckpointPolicy policy = CheckpointPolicy::kAsync;
  IntervalChoice choice = IntervalChoice::kYoung;
  Time interval = {};                   // kGiven: from the end of one to the beginning of the next
  Time keep_every{21'600'000'000'000};  // besides the latest, storage keeps one in so much work
  // On a failure's signal the ranks that are left save where they stand, each for itself and for the peer
  // whose memory it copies. 0: they do not; otherwise how often that works out.
  double triggered = 0;
  ByteRate storage = {};    // of the whole job, into storage and out of it
  ByteRate host_copy = {};  // of a device to its host's memory
  ByteRate peer_copy = {};  // of a device to a peer's memory
};

// What one checkpoint of a job is and takes.
struct CheckpointCosts {
  Time stall;     // the job stands still
  Time durable;   // from its beginning until storage has it
  Time in_peers;  // until the peers have it; kMemory
  Time load;      // state back onto the devices, from storage
  Time reload;    // from peers' memory
};
CheckpointCosts checkpoint_costs(const CheckpointPlan& plan, Bytes state, std::int64_t devices);

// The interval between checkpoints that loses least time, for a cost of `stall` each and faults `mtbf` apart:
// Young 1974 (first order), Daly 2006 (higher order). Zero cost: zero.
Time young_interval(Time stall, Time mtbf);
Time daly_interval(Time stall, Time mtbf);

}  // namespace moebius
