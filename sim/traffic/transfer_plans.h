// Transfer plans of communication ops, shared by all ops of a group with the same kind, algorithm and
// payload.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/traffic/collectives.h"
#include "sim/traffic/library_calls.h"
#include "sim/traffic/step_builder.h"
#include "workloads/report/collective_choice.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

struct PlanOptions {
  bool with_pairs = false;  // also list every message, as networks of single messages need it
  std::uint64_t seed = 0;   // of the hash that picks paths
  std::vector<CollectiveChoice>* choices = nullptr;  // where distinct collectives are noted; null: nowhere
};

class TransferPlans {
 public:
  TransferPlans(const Cluster& cluster, const Layout& layout, const PlanOptions& options = {});

  // Of op `index` as a member of `rank_class` sees it; for a send, the message. Never null; not for a
  // receive.
  std::shared_ptr<const TransferPlan> plan(const Fragment& fragment, int index, int rank_class);
  // Who must meet: equal for the ops of one group, or of one sender and receiver; different for others.
  std::int64_t meeting_place(const Op& op, int rank_class) const;
  // Drops plans that no one holds any more.
  void forget_unused();
  const WireTable& wires() const { return table_; }
  WireTable& wires() { return table_; }

 private:
  struct Key {
    std::int32_t group = 0;
    std::int32_t member = -1;  // the sender; -1: a collective
    OpKind kind = OpKind::kSend;
    Algorithm algorithm = Algorithm::kAuto;
    double bytes = 0;
    std::int32_t units = 0;  // cores that it holds
    const Route* route = nullptr;
    const PairBytes* pairs = nullptr;
    // Between virtual ranks, which exchange operand after operand, at a rate that the format decides.
    std::int32_t operands = 0;
    DType dtype = DType::kBf16;
    std::uint8_t queue = 0;
    bool ring = false;  // an all-to-all in which each sends to the next alone
    auto operator<=>(const Key&) const = default;
  };

  std::int32_t group_id(int rank_class, GroupRole role) const {
    return group_ids_[rank_class * kNumGroupRoles + static_cast<int>(role)];
  }
  const GroupSites& sites_of(std::int32_t id, const Group& group, int rank_class);
  TransferPlan build(const Op& op, const Key& key, const Group& group, const GroupSites& sites);
  TransferPlan collective(const Op& op, const Key& key, const GroupSites& sites);
  TransferPlan without_library(const Op& op, CollectiveQuery& query, const GroupSites& sites,
                               CollectiveChoice& choice);
  std::optional<TransferPlan> named_by_library(CollectiveQuery& query, const GroupSites& sites,
                                               CollectiveChoice& choice);
  TransferPlan fastest(CollectiveQuery& query, const GroupSites& sites, CollectiveChoice& choice);
  bool has_too_many_pairs(const GroupSites& sites) const;
  bool is_new(const CollectiveChoice& choice) const;
  void note(const CollectiveQuery& query, const GroupSites& sites, CollectiveChoice choice);
  void start_by_library(TransferPlan& plan, const CollectiveQuery& query, const GroupSites& sites,
                        CollectiveChoice& choice) const;
  std::optional<TransferPlan> library_plan(const CollectiveQuery& query, const GroupSites& sites);
  std::optional<TransferPlan> plan_between_nodes(CollectiveQuery& query, const GroupSites& sites,
                                                 CollectiveChoice& choice);
  double copy_start(const Member& from, const Member& to) const;
  Step step_of(const LibraryCall& call, const GroupSites& sites);
  TransferPlan steps_of(const std::vector<Traffic>& traffic, const GroupSites& sites);

  const Cluster& cluster_;
  const Layout& layout_;
  const std::optional<LocalExchange>& exchange_;
  Sites sites_;
  WireTable table_;
  FlowPaths paths_;
  StepBuilder builder_;
  bool with_pairs_;
  std::vector<std::int32_t> group_ids_;                 // by class and role; -1: in no such group
  std::vector<std::optional<GroupSites>> group_sites_;  // by group id, made when first needed
  std::map<Key, std::weak_ptr<const TransferPlan>> plans_;
  std::map<Key, Algorithm> decided_;  // automatic choices so far
  std::vector<CollectiveChoice>* choices_;
};

}  // namespace moebius
