#include "sim/fragment_uses.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/launches.h"
#include "workloads/schedule/work.h"

namespace moebius {
namespace {

// Members of the class's expert group that the class itself stands for: all of a folded one, itself alone
// otherwise.
std::vector<std::int32_t> simulated_members(const Layout& layout, int rank_class) {
  std::vector<std::int32_t> members;
  const std::vector<std::int32_t>& ranks = layout.classes[rank_class].group(GroupRole::kExpert).ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (layout.class_of_rank[ranks[i]] == rank_class) members.push_back(static_cast<std::int32_t>(i));
  }
  return members;
}

void link_successors(const Fragment& fragment, FragmentUse& use) {
  const std::size_t n = fragment.ops.size();
  use.first_successor.assign(n + 1, 0);
  for (const std::int32_t before : fragment.dependencies) ++use.first_successor[before + 1];
  for (std::size_t i = 0; i < n; ++i) use.first_successor[i + 1] += use.first_successor[i];
  use.successors.resize(fragment.dependencies.size());
  std::vector<std::int32_t> next(use.first_successor.begin(), use.first_successor.end() - 1);
  for (std::size_t i = 0; i < n; ++i) {
    const Op& op = fragment.ops[i];
    use.num_dependencies.push_back(op.num_dependencies);
    for (int d = 0; d < op.num_dependencies; ++d) {
      use.successors[next[fragment.dependencies[op.first_dependency + d]]++] = static_cast<std::int32_t>(i);
    }
  }
}

}  // namespace

ClassUse::ClassUse(const Fragment& fragment, int rank_class, OpCosts& shared, std::unique_ptr<OpCosts> own)
    : fragment_(fragment),
      rank_class_(rank_class),
      shared_(shared),
      own_(std::move(own)),
      plans_(fragment.ops.size()) {
  for (const Op& op : fragment.ops) has_own_cost_.push_back(has_member_rows(op));
}

FragmentUses::FragmentUses(const Cluster& cluster, const Layout& layout,
                           const std::vector<const CostSource*>& sources,
                           const std::vector<ClockPower>* powers, TransferPlans& plans)
    : cluster_(cluster), layout_(layout), powers_(powers), plans_(plans) {
  CHECK(sources.size() == cluster.pools.size(),
        fmt::format("{} cost sources for {} pools", sources.size(), cluster.pools.size()));
  for (const CostSource* source : sources) sources_.emplace_back(*source);
  for (const RankClass& rank_class : layout.classes) {
    const Pool& pool = cluster.pool_of(layout.device_of_rank[rank_class.representative()]);
    pool_of_class_.push_back(static_cast<int>(&pool - cluster.pools.data()));
  }
}

FragmentUse& FragmentUses::acquire(const FragmentPtr& fragment, int rank_class) {
  std::unique_ptr<FragmentUse>& use = uses_[fragment.get()];
  if (!use) use = prepare(fragment);
  if (!use->classes[rank_class]) use->classes[rank_class] = prepare_class(*use, rank_class);
  ++use->live;
  FragmentUse& acquired = *use;
  if (uses_.size() > most_kept_) forget_idle();
  return acquired;
}

std::unique_ptr<FragmentUse> FragmentUses::prepare(const FragmentPtr& fragment) const {
  auto use = std::make_unique<FragmentUse>();
  use->fragment = fragment;
  for (std::size_t i = 0; i < fragment->ops.size(); ++i) {
    const Op& op = fragment->ops[i];
    use->lane_ops[static_cast<int>(op.lane)].push_back(static_cast<std::int32_t>(i));
    use->ops.push_back({op.units, op.lane, is_communication(op.kind), op.lane == Lane::kLoader,
                        Launches::reads_counts(*fragment, i)});
  }
  link_successors(*fragment, *use);
  use->pool_costs.resize(cluster_.pools.size());
  use->classes.resize(layout_.classes.size());
  return use;
}

std::unique_ptr<ClassUse> FragmentUses::prepare_class(FragmentUse& use, int rank_class) {
  const Fragment& fragment = *use.fragment;
  const int pool = pool_of_class_[rank_class];
  const Accelerator& chip = cluster_.pools[pool].accelerator;
  check_cores(fragment, chip);
  const auto costs_of = [&](std::vector<std::int32_t> members) {
    const ClockPower* power = powers_ == nullptr ? nullptr : &(*powers_)[pool];
    return std::make_unique<OpCosts>(fragment, chip, sources_[pool], distinct_costs_, std::move(members),
                                     cluster_.loader, power);
  };
  std::unique_ptr<OpCosts>& shared = use.pool_costs[pool];
  if (!shared) shared = costs_of({});
  return std::make_unique<ClassUse>(fragment, rank_class, *shared,
                                    costs_of(simulated_members(layout_, rank_class)));
}

// Ranks of an executor's machine hold their whole device: it has no cores to split.
void FragmentUses::check_cores(const Fragment& fragment, const Accelerator& chip) const {
  if (cluster_.exchange) return;
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    const Op& op = fragment.ops[i];
    const bool apart = is_communication(op.kind) && chip.independent_engines;
    const int cores = apart ? chip.general_cores : std::max(1, chip.cores);
    const bool uncounted = is_communication(op.kind) ? cores == 0 : chip.independent_engines && op.units < 0;
    if (uncounted || (op.units <= cores && op.units > -cores)) continue;
    throw run_error(fmt::format("op {} ({}) of \"{}\" {} {} cores, but {} has {}", i, to_string(op.kind),
                                fragment.name, op.units > 0 ? "holds" : "leaves", std::abs(op.units), chip.id,
                                cores));
  }
}

// Fragments that are issued once (one for each step, say) do not pile up.
void FragmentUses::forget_idle() {
  std::erase_if(uses_, [](const auto& entry) { return entry.second->live == 0; });
  plans_.forget_unused();
  most_kept_ = std::max<std::size_t>(256, 2 * uses_.size());
}

}  // namespace moebius
