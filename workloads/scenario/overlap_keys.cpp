#include "workloads/scenario/overlap_keys.h"

#include <fmt/format.h>

#include "workloads/cost/exchange_model.h"
#include "workloads/scenario/expert_columns_keys.h"

namespace moebius {

void read_overlap(Section& phase, Section& experts, PhaseKeys& keys) {
  keys.two_batch = phase.boolean("two_batch_overlap", false,
                                 "two half batches: one's tokens travel while the other computes");
  keys.communication_cores = static_cast<int>(experts.integer(
      "communication_sms", {0, 4096}, 0,
      "cores that dispatch and combine of \"deepep\" hold; 0: as many as that kernel takes, beside two half "
      "batches, and none otherwise"));
}

void set_overlap(const PhaseKeys& keys, PhaseOverlap& overlap) {
  overlap.two_batch = keys.two_batch;
  overlap.communication_cores = keys.communication_cores;
  if (keys.two_batch && keys.communication_cores == 0 && keys.exchange == Algorithm::kHierarchical)
    overlap.communication_cores = kThroughputCores;
}

void check_overlap(const PhaseKeys& keys, bool decodes, const ServingPlan& plan, const Place& phase) {
  check_expert_columns(keys, plan, phase);
  if (keys.communication_cores > 0 && keys.exchange != Algorithm::kHierarchical)
    phase.fail(
        fmt::format("ep/communication_sms {} for a dispatch that holds no cores while tokens travel; "
                    "expected dispatch \"deepep\"",
                    keys.communication_cores));
  if (!plan.overlap(decodes).two_batch) return;
  if (plan.sharing(decodes) != ExpertSharing::kDispatch)
    phase.fail(
        fmt::format("two_batch_overlap hides the way of tokens to experts on other ranks; expected an ep "
                    "degree above attention tp, found tp {} and ep {}",
                    plan.tp, plan.ep));
  if (keys.exchange == Algorithm::kAuto)
    phase.fail(
        "two_batch_overlap needs to know which cores its exchanges hold; expected ep/dispatch "
        "\"deepep\", \"deepep-low-latency\", \"all-to-all\" or \"all-gather\", found \"auto\"");
}

}  // namespace moebius
