#include "workloads/scenario/expert_columns_keys.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "workloads/scenario/scenario.h"
#include "workloads/serving/serving.h"

namespace moebius {
void read_expert_columns(Section& experts, PhaseKeys& keys) {
  keys.expert_tp = experts.whole(
      "tp", {0, kMostRanks}, 0,
      "ranks that share each of those experts by columns, of several replicas where ep/degree times as many "
      "are more than attention/tp; 0: what the degree leaves of attention/tp, or 1");
}

void set_expert_columns(const PhaseKeys& keys, ServingPlan& plan, const Place& phase) {
  if (keys.expert_tp == 0) return;
  const std::int64_t ranks = std::int64_t{plan.ep} * keys.expert_tp;
  if (ranks <= plan.tp && ranks != plan.tp)
    phase.fail(
        fmt::format("ep/tp {}: of the {} ranks of a replica that share experts by {}, as many have "
                    "columns of each as are left; expected {}",
                    keys.expert_tp, plan.tp, plan.ep, std::max(1, plan.tp / plan.ep)));
  plan.expert_tp = keys.expert_tp;
  if (ranks <= plan.tp || keys.expert_tp == 1) return;
  if (!keys.expert_pool.empty())
    phase.fail(fmt::format("ep/tp {} with experts on pool \"{}\", which stand there whole: expected 1",
                           keys.expert_tp, keys.expert_pool));
  if (plan.cp > 1)
    phase.fail(fmt::format("ep/tp {} with prompts that {} ranks cut: expected 1, or attention/cp 1",
                           keys.expert_tp, plan.cp));
  if (ranks % plan.tp != 0)
    phase.fail(
        fmt::format("ep {} x tp {} = {} ranks share experts, which whole replicas of tp {} are not: "
                    "expected a multiple of {}",
                    plan.ep, keys.expert_tp, ranks, plan.tp, plan.tp));
  if (ranks > kMostRanks)
    phase.fail(fmt::format("ep {} x tp {} = {} ranks share experts: expected at most {}", plan.ep,
                           keys.expert_tp, ranks, static_cast<int>(kMostRanks)));
}

void check_expert_columns(const PhaseKeys& keys, const ServingPlan& plan, const Place& phase) {
  if (!plan.shares_by(ExpertSharing::kGather)) return;
  if (keys.two_batch)
    phase.fail(
        fmt::format("two_batch_overlap with ep/tp {}, whose ranks gather all tokens in line: expected "
                    "false, or ep/tp 1",
                    plan.expert_tp));
  const bool gathers = keys.exchange == Algorithm::kAuto || keys.exchange == Algorithm::kRing;
  if (keys.exchange_given && !gathers)
    phase.fail(
        fmt::format("ep/dispatch \"{}\" takes tokens to whole experts, and with ep/tp {} ranks gather "
                    "them: expected \"all-gather\" or \"auto\"",
                    dispatch_name(keys.exchange), plan.expert_tp));
}

int set_instance(ServingPlan& plan, int dp, const Place& phase) {
  const int sharing = plan.ranks_of_route(), of_each = sharing / plan.ep, ranks = dp * plan.cp * plan.tp;
  plan.dp = plan.tp > 1 ? std::max(1, sharing / plan.tp) : std::max(sharing, plan.cp);
  if (plan.cp > 1 && (plan.dp % plan.cp != 0 || plan.dp % plan.ep != 0))
    phase.fail(
        fmt::format("experts over {} ranks, prompts over {}: neither divides the other", plan.ep, plan.cp));
  if (sharing > ranks)
    phase.fail(
        fmt::format("{} spreads experts over {} ranks, of which dp {} x {}tp {} has {}: expected an ep "
                    "degree of at most {}",
                    expert_degrees(plan), sharing, dp, plan.cp > 1 ? fmt::format("cp {} x ", plan.cp) : "",
                    plan.tp, ranks, std::max(1, ranks / of_each)));
  if (dp % plan.replicas() != 0)
    phase.fail(fmt::format("{} replicas share experts by {}: that does not divide dp {}", plan.replicas(),
                           expert_degrees(plan).substr(3), dp));
  return dp / plan.replicas();
}

}  // namespace moebius
