// What the members of a class carry whom one stands for: part of StepBuilder.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/traffic/step_builder.h"

namespace moebius {
namespace {

constexpr double kAlike = 1e-9;

// Steps like this one that go on at a time: one of each group, or of each member of the class.
double steps_alike(const Traffic& traffic, const GroupSites& group, const Layout& layout) {
  const std::int32_t of = group.members[traffic.own_message ? traffic.edges.front().from : 0].rank_class;
  const double ranks = layout.classes[of].size();
  if (traffic.own_message) return ranks;
  const auto here = std::count_if(group.members.begin(), group.members.end(),
                                  [of](const Member& member) { return member.rank_class == of; });
  return ranks / static_cast<double>(here);
}

}  // namespace

// A device's wire, or that of a pair of them: not shared by many, nor inside a device.
bool StepBuilder::is_own(const Load& load) const {
  const int kind = table_.kind(load.wire);
  return kind != kNumWireKinds && (load.device >= 0 || kind == static_cast<int>(WireKind::kScaleUpPair));
}

// Of each wire that stands for others: what they carry on average, all steps like this one taken together,
// and, where that is not what its flows have, what each of them does.
void StepBuilder::account_for_members(const Traffic& traffic, const GroupSites& group, Step& step) {
  if (!sites_.folded() || group.members.empty()) return;
  struct Sum {
    std::int32_t stand_in = 0;
    double bytes = 0, most = 0;
    bool even = true;
  };
  std::vector<Sum> sums;
  folded_at_.resize(table_.size(), -1);
  for (const Load& load : loads_) {
    if (!is_own(load)) continue;
    std::int32_t& at = folded_at_[load.stand_in];
    if (at < 0) {
      at = static_cast<std::int32_t>(sums.size());
      sums.push_back({load.stand_in});
    }
    sums[at].bytes += load.bytes / load.times;
    sums[at].most = std::max(sums[at].most, load.bytes);
  }
  const double alike = steps_alike(traffic, group, sites_.layout());
  bool differ = false;
  for (Sum& sum : sums) {
    const int kind = table_.kind(sum.stand_in);
    const WireKind of = kind > kNumWireKinds ? WireKind::kNicOut : static_cast<WireKind>(kind);  // posting
    const double mean = sum.bytes * alike / sites_.times({of, table_.index(sum.stand_in)});
    sum.even = std::abs(sum.most - mean) <= kAlike * sum.most;
    if (!sum.even) step.passed.push_back({sum.stand_in, mean - sum.most});
    differ = differ || !sum.even;
    sum.bytes = mean;
  }
  if (differ) {
    std::vector<MemberLoad> members;
    if (step.members) members = *step.members;
    for (const Load& load : loads_) {
      if (!is_own(load)) continue;
      const Sum& sum = sums[folded_at_[load.stand_in]];
      if (!sum.even) members.push_back({load.wire, load.stand_in, load.bytes - sum.bytes});
    }
    step.members = std::make_shared<const std::vector<MemberLoad>>(std::move(members));
  }
  for (const Sum& sum : sums) folded_at_[sum.stand_in] = -1;
}

}  // namespace moebius
