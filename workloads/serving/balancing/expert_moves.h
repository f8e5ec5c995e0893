// Weights that move when the experts of a layer are placed anew.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedule/expert_transfer.h"
#include "workloads/serving/balancing/slot_loads.h"

namespace moebius {

struct ExpertMove {
  std::int32_t expert = 0, from = 0, to = 0;  // ranks
};

struct Rearrangement {
  SlotExperts expert_of_slot;  // the same experts on each rank as wanted, in slots where they stood already
                               // as far as they did
  std::vector<ExpertMove> moves;  // what a rank did not have: once each, by receiver
};

// From the slots as they are to slots as wanted. A rank gets an expert from one that has it: on its node,
// where there is one, and of these from the one that has sent least so far, the lowest of equal ones.
Rearrangement rearrange(const SlotExperts& now, const SlotExperts& wanted, int ranks, int ranks_per_node);

// The same slot by slot: what each sends, and where it is put. What a rank had in another slot it sends
// itself.
ExpertTransfer::Layer transfer_of(int layer, const SlotExperts& now, const Rearrangement& change, int ranks);

}  // namespace moebius
