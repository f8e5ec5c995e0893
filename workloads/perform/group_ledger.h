// Bytes on every group of ranks, twice: as the schedule says they must be sent, and as an executor really
// sent them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"

namespace moebius {

struct GroupBytes {
  GroupRole role = GroupRole::kNone;
  std::vector<std::int32_t> ranks;
  OpKind kind = OpKind::kSend;
  std::int64_t ops = 0;  // of all members
  double scheduled = 0;  // payload that leaves a member, over all members
  double moved = 0;
  bool agree() const;  // to the byte, but for rounding of sums
};

class GroupLedger {
 public:
  explicit GroupLedger(const Layout& layout) : layout_(layout) {}

  void scheduled(const Submission& submission);  // each submission once, before anything of it moved
  void moved(std::int32_t sequence, std::int32_t op, std::int32_t rank, double bytes);
  std::vector<GroupBytes> rows() const;  // by role, ranks, kind

 private:
  using Key = std::tuple<GroupRole, std::vector<std::int32_t>, OpKind>;
  GroupBytes& row(const Op& op, std::int32_t rank_class);

  const Layout& layout_;
  std::map<std::int32_t, Submission> submissions_;  // by sequence
  std::map<Key, GroupBytes> rows_;
};

std::string to_text(const std::vector<GroupBytes>& rows);  // summed over the groups of a role and kind

}  // namespace moebius
