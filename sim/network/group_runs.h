// Groups whose members are runs of `block` neighbouring ranks, the runs `stride` apart: groups of this kind
// tile the ranks, stride / block of them side by side.
#pragma once

#include <cstdint>
#include <optional>

#include "workloads/schedule/layout.h"

namespace moebius {

class GroupRuns {
 public:
  // Nothing: its members do not stand like that.
  static std::optional<GroupRuns> of(const Group& group);

  // Of a rank in the group that it is in.
  std::int64_t index_of(std::int32_t rank) const;
  bool meet(std::int32_t a, std::int32_t b) const { return group_of(a) == group_of(b); }

 private:
  struct Place {
    std::int64_t tile = 0, column = 0;
    bool operator==(const Place&) const = default;
  };
  GroupRuns(std::int64_t block, std::int64_t stride, std::int64_t tile, std::int64_t first)
      : block_(block), stride_(stride), tile_(tile), first_(first) {}

  std::int64_t in_tile(std::int32_t rank) const;
  Place group_of(std::int32_t rank) const;

  std::int64_t block_, stride_, tile_;
  std::int64_t first_;  // rank with which a tile begins
};

}  // namespace moebius
