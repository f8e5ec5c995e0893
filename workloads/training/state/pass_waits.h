// What single ops of a pass wait for in the passes before it, where these need not be over: messages to other
// stages, for which others have to come, are not waited for.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedule/fragment.h"
#include "workloads/training/plan.h"

namespace moebius {

struct IssuedPass {
  std::int32_t sequence = 0;
  FragmentPtr fragment;
};

// `reductions`: the passes of the step that complete gradients, whose sums may still travel when they have
// computed; `last`: of all passes. Frameworks update when all sums are there. Where something comes from the
// host for updates, each waits for its own gradients; what comes, and the sums that are left, for the last
// pass to have computed.
void wait_for_gradients(const TrainingPlan& plan, const std::vector<IssuedPass>& reductions,
                        const IssuedPass& last, Submission& optimizer);

// What `forward` copies to the host has arrived before the reverse pass of its microbatch loads it.
void wait_for_host_copies(const IssuedPass& forward, Submission& reverse);

// No op of `next` but messages begins before these ops of that submission have ended.
void wait_for_ops(std::int32_t sequence, const std::vector<std::int32_t>& ops, Submission& next);

}  // namespace moebius
