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
#include "workloads/schedule/fragment.h"

namespace moebius {

class TransferPlans {
 public:
  // `with_pairs`: also lists every message, as the native network needs it. `seed`: of the hash that picks
  // paths.
  TransferPlans(const Cluster& cluster, const Layout& layout, bool with_pairs, std::uint64_t seed = 0);

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
    const Route* route = nullptr;
    // Between virtual ranks, which exchange operand after operand, at a rate that the format decides.
    std::int32_t operands = 0;
    DType dtype = DType::kBf16;
    std::uint8_t queue = 0;
    std::int16_t held = 0;  // cores of a dispatch or combine
    auto operator<=>(const Key&) const = default;
  };

  std::int32_t group_id(int rank_class, GroupRole role) const {
    return group_ids_[rank_class * kNumGroupRoles + static_cast<int>(role)];
  }
  const GroupSites& sites_of(std::int32_t group, const Group& ranks);
  TransferPlan build(const Op& op, const Route* route, const Group& group, const GroupSites& sites);
  double copy_start(const Member& from, const Member& to) const;
  TransferPlan collective(const Op& op, const GroupSites& sites);
  Step step_of(const LibraryCall& call, const GroupSites& sites);
  TransferPlan collective_by(CollectiveQuery query, const GroupSites& sites);
  int best_chunks(const CollectiveQuery& query, const GroupSites& sites);
  TransferPlan steps_of(const std::vector<Traffic>& traffic, const GroupSites& sites);

  const Cluster& cluster_;
  const Layout& layout_;
  const std::optional<LocalExchange>& exchange_;
  Sites sites_;
  WireTable table_;
  FlowPaths paths_;
  StepBuilder builder_;
  bool with_pairs_;
  bool shared_wires_bind_ = false;
  std::vector<std::int32_t> group_ids_;                 // by class and role; -1: in no such group
  std::vector<std::optional<GroupSites>> group_sites_;  // by group id, made when first needed
  std::map<Key, std::weak_ptr<const TransferPlan>> plans_;
};

}  // namespace moebius
