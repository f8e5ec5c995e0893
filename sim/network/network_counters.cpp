#include "sim/network/network_counters.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace moebius {
namespace {

// Below this a utilisation has not changed: rates are recomputed and differ in their last digits.
constexpr double kSame = 1e-9;

}  // namespace

void NetworkCounters::before(Time to) {
  std::vector<std::int32_t> ended;  // nothing ends before `to`
  for (; next_ < to; next_ = next_ + interval_) {
    network_.advance(next_, ended);
    sample(next_);
  }
}

// `name` is called for once: most wires keep their share from sample to sample.
template <class Name>
void NetworkCounters::tell(Counter& counter, const Name& name, double value) {
  if (std::abs(value - counter.value) < kSame) return;
  if (counter.id < 0) counter.id = recorder_.counter_named(name());
  counter.value = value;
  recorder_.counter(0, counter.id, begin_, value);
}

void NetworkCounters::finish(Time end) {
  before(end);
  if (begin_ < end) sample(end);
  // From here nothing is under way.
  const auto told_before = [] { return std::string(); };  // who never had a value has none to end
  for (Counter& wire : wires_) tell(wire, told_before, 0);
  for (Tier& tier : tiers_) {
    tell(tier.mean, told_before, 0);
    tell(tier.max, told_before, 0);
  }
}

void NetworkCounters::sample(Time until) {
  const double seconds = (until - begin_).seconds();
  carried_.resize(table_.size(), 0);
  wires_.resize(table_.size());
  for (Tier& tier : tiers_) tier.sum = tier.most = tier.wires = 0;
  for (int wire = 0; wire < table_.size(); ++wire) {
    const double carried = network_.carried(wire);
    const double share = (carried - carried_[wire]) / (table_.capacity(wire) * seconds);
    carried_[wire] = carried;
    if (carried <= 0) continue;
    tell(wires_[wire], [&] { return fmt::format("wire {}", table_.name(wire)); }, share);
    Tier& tier = tiers_[table_.kind(wire)];
    tier.sum += share;
    tier.most = std::max(tier.most, share);
    ++tier.wires;
  }
  for (std::size_t kind = 0; kind < tiers_.size(); ++kind) {
    Tier& tier = tiers_[kind];
    if (tier.wires == 0) continue;
    const std::string_view name = wire_kind_name(static_cast<int>(kind));
    tell(tier.mean, [&] { return fmt::format("tier {} mean", name); }, tier.sum / tier.wires);
    tell(tier.max, [&] { return fmt::format("tier {} max", name); }, tier.most);
  }
  begin_ = until;
}

}  // namespace moebius
