// A host's profile knows each kernel in two states of the caches (DeviceUnderTest of the host): its operands
// in L2, or in the next cache. What ranks of a job do lies in between, by how much memory they touch in
// turns.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "hw/profile.h"
#include "workloads/cost/cost_source.h"
#include "workloads/job.h"

namespace moebius {

// That all ranks touch in a microbatch, who take turns on the same cores: what they hold but the optimizer's
// states, most of it stored in 16 bits and kept in 32. At most 64 MiB.
std::size_t touched_bytes(const Job& job);

// Of memory that is touched in turns, the share that a cache still holds when it is touched again: what fits,
// cache / touched; all where everything fits.
double share_in_cache(double touched, double cache);

// An op's time is share * (hot tables) + (1 - share) * (the others) where an operand lasts from step to step
// (weights, what the forward pass kept for the backward pass); of other ops, whose operands were made just
// before, that of the hot tables.
std::shared_ptr<const CostSource> mixed_costs(const Accelerator& chip, const Profile& profile, double share);

// What a profile calls an exchange curve in the other state.
std::string cold_exchange_name(const std::string& name);

// Each exchange curve that is known in both states becomes the mixture of both, as mixed_costs().
void mix_exchange(DeviceFigures& device, double share);

}  // namespace moebius
