#include "workloads/crosscheck/cache_mixture.h"

#include <fmt/format.h>

#include <algorithm>

namespace moebius {
namespace {

constexpr double kMostTouched = 64.0 * 1048576;

Profile with_tables(const Profile& profile, bool hot) {
  Profile some = profile;
  std::erase_if(some.tables, [&](const ProfileTable& table) { return table.hot != hot; });
  return some;
}

// Weights, a cache, or what the forward pass kept for the backward pass: it was last touched a step ago.
// Other operands were made by the ops just before.
bool has_lasting_operand(OpKind kind) {
  switch (kind) {
    case OpKind::kGemm:
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
    case OpKind::kAttentionGrad:
    case OpKind::kPagedAttention:
    case OpKind::kIndexScores:
    case OpKind::kAbsorbQueries:
    case OpKind::kAbsorbedValues:
    case OpKind::kConvolution:
    case OpKind::kDeltaRule:
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:
    case OpKind::kNormGrad:
    case OpKind::kActivationGrad:
    case OpKind::kGateGrad:
    case OpKind::kUnpermuteGrad:
    case OpKind::kAdam:
    case OpKind::kSumSquares:
    case OpKind::kCacheAppend:
    case OpKind::kPlaceExperts:
      return true;
    case OpKind::kAttention:
    case OpKind::kInput:
    case OpKind::kNorm:
    case OpKind::kRowMeans:
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kActivation:
    case OpKind::kGate:
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:
    case OpKind::kUnpermute:
    case OpKind::kAdd:
    case OpKind::kTopKeys:
    case OpKind::kSplit:
    case OpKind::kConcat:
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:
    case OpKind::kLargest:
    case OpKind::kQuantise:
    case OpKind::kTransposeQuantise:
    case OpKind::kCrossEntropyStats:
    case OpKind::kCrossEntropy:
    case OpKind::kLastRows:
    case OpKind::kGreedySample:
    case OpKind::kNextToken:
    case OpKind::kDispatch:
    case OpKind::kCombine:
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kRecv:
    case OpKind::kCopyToHost:
    case OpKind::kCopyFromHost:
      return false;
  }
  return false;
}

class MixedCosts : public CostSource {
 public:
  MixedCosts(const Accelerator& chip, const Profile& profile, double share)
      : hot_(make_cost_source(chip, std::vector<Profile>{with_tables(profile, true)})),
        cold_(make_cost_source(chip, std::vector<Profile>{with_tables(profile, false)})),
        share_(share) {}

  Cost cost(const CostQuery& query) const override {
    CostQuery warm = query;
    warm.hot = true;
    const Cost hot = hot_->cost(warm);
    if (!has_lasting_operand(query.kind)) return hot;
    Cost cost = cold_->cost(query);
    cost.seconds = share_ * hot.seconds + (1 - share_) * cost.seconds;
    cost.error = std::max(cost.error, hot.error);
    return cost;
  }
  std::string description() const override {
    return fmt::format("{}, {:.0f}% of what lasts in L2", cold_->description(), 100 * share_);
  }

 private:
  std::unique_ptr<const CostSource> hot_, cold_;
  double share_ = 0;
};

}  // namespace

std::size_t touched_bytes(const Job& job) {
  double bytes = 0;
  for (std::size_t i = 0; job.memory && i < job.memory->classes.size(); ++i) {
    const auto held = [&](MemoryKind kind) {
      return job.layout().classes[i].size() * job.memory->classes[i].at_peak[static_cast<int>(kind)].value;
    };
    bytes += held(MemoryKind::kGradients);
    for (const MemoryKind kind : {MemoryKind::kWeights, MemoryKind::kActivations, MemoryKind::kTransient})
      bytes += 2 * held(kind);
  }
  return static_cast<std::size_t>(std::min(bytes, kMostTouched));
}

double share_in_cache(double touched, double cache) {
  return touched <= cache ? 1 : cache / touched;
}

std::shared_ptr<const CostSource> mixed_costs(const Accelerator& chip, const Profile& profile, double share) {
  return std::make_shared<MixedCosts>(chip, profile, share);
}

std::string cold_exchange_name(const std::string& name) {
  return name + " cold";
}

void mix_exchange(DeviceFigures& device, double share) {
  for (TransferCurve& curve : device.transfers) {
    const TransferCurve* cold = device.transfer(cold_exchange_name(curve.name));
    if (cold == nullptr || curve.rate <= 0 || cold->rate <= 0) continue;
    curve.latency = share * curve.latency + (1 - share) * cold->latency;
    curve.rate = 1 / (share / curve.rate + (1 - share) / cold->rate);
  }
}

}  // namespace moebius
