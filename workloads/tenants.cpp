#include "workloads/tenants.h"

#include <numeric>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/collective.h"

namespace moebius {

TenantsRun::TenantsRun(const CollectiveWorkload& work) : tenants_(work.tenants) {
  CHECK(!tenants_.empty(), "tenants without a tenant");
  for (const Tenant& tenant : tenants_) {
    const CollectiveWorkload own{.operation = tenant.operation,
                                 .algorithm = tenant.algorithm,
                                 .bytes = tenant.bytes,
                                 .ranks = tenant.ranks,
                                 .dtype = work.dtype,
                                 .fold = work.fold,
                                 .tenants = {}};
    State state;
    state.fragment = collective_fragment(own, tenant.queue);
    add_classes(tenant, state, work.fold);
    total_ += static_cast<std::int64_t>(state.num_classes) * (1 + tenant.repeat);
    states_.push_back(std::move(state));
  }
}

// The tenant's ranks follow those of the tenants before it; its group is the world of its classes.
void TenantsRun::add_classes(const Tenant& tenant, State& state, bool fold) {
  std::vector<std::int32_t> ranks(tenant.ranks);
  std::iota(ranks.begin(), ranks.end(), layout_.ranks);
  state.first_class = static_cast<std::int32_t>(layout_.classes.size());
  state.num_classes = fold ? 1 : tenant.ranks;
  layout_.classes.resize(state.first_class + state.num_classes);
  for (int i = 0; i < tenant.ranks; ++i) {
    const std::int32_t rank_class = state.first_class + (fold ? 0 : i);
    layout_.class_of_rank.push_back(rank_class);
    layout_.device_of_rank.push_back(static_cast<std::int32_t>(tenant.device(i)));
    layout_.classes[rank_class].ranks.push_back(ranks[i]);
  }
  for (std::int32_t i = 0; i < state.num_classes; ++i) {
    layout_.classes[state.first_class + i].groups[static_cast<int>(GroupRole::kWorld)] = {
        .ranks = ranks, .my_index = i, .num_classes = state.num_classes};
  }
  layout_.ranks += tenant.ranks;
}

// Alone when all before it have been; together when every one has.
bool TenantsRun::may_begin(std::size_t tenant) const {
  const State& state = states_[tenant];
  if (state.outstanding > 0 || state.operations > tenants_[tenant].repeat) return false;
  const std::size_t others = state.operations == 0 ? tenant : states_.size();
  for (std::size_t i = 0; i < others; ++i) {
    const bool alone = states_[i].operations == 1 && states_[i].outstanding > 0;
    if (states_[i].operations == 0 || alone) return false;
  }
  return true;
}

std::optional<Submission> TenantsRun::issue(std::size_t tenant, Time now) {
  State& state = states_[tenant];
  if (state.issued == state.num_classes) return std::nullopt;
  if (state.issued == 0) state.begin = now;
  const auto sequence = static_cast<std::int32_t>(tenant_of_sequence_.size());
  tenant_of_sequence_.push_back(static_cast<std::int32_t>(tenant));
  ++state.outstanding;
  return Submission{.fragment = state.fragment,
                    .sequence = sequence,
                    .rank_class = state.first_class + state.issued++,
                    .microbatch = state.operations - 1,
                    .after = {}};
}

std::optional<Submission> TenantsRun::next(Time now) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (may_begin(i)) {
      ++states_[i].operations;
      states_[i].issued = 0;
    }
    if (states_[i].operations == 0) continue;
    if (auto submission = issue(i, now)) return submission;
  }
  return std::nullopt;
}

void TenantsRun::completed(const Completion& completion) {
  ++completed_;
  State& state = states_[tenant_of_sequence_[completion.sequence]];
  if (--state.outstanding > 0 || state.issued < state.num_classes) return;
  const Time took = completion.time - state.begin;
  (state.operations == 1 ? state.alone : state.together) += took;
}

std::vector<TenantFigures> TenantsRun::figures() const {
  std::vector<TenantFigures> all;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    all.push_back(
        {tenants_[i].name, states_[i].alone.seconds(), states_[i].together.seconds() / tenants_[i].repeat});
  }
  return all;
}

}  // namespace moebius
