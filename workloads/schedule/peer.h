// Whom a message goes to or comes from: of two members the other one; in a larger group, where a member
// writes now to one and then to another, Op::shape.groups - 1 is the other one's index.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/schedule/op.h"

namespace moebius {

// The other member of a kSend or kRecv, seen by member `me` of a group of so many.
inline std::int32_t peer_of(const Op& op, std::int32_t me, std::int64_t members) {
  const std::int32_t peer = op.shape.groups > 0 ? op.shape.groups - 1 : 1 - me;
  CHECK((members == 2 || op.shape.groups > 0) && peer >= 0 && peer < members && peer != me,
        fmt::format("member {} writes to {} in a group of {}", me, peer, members));
  return peer;
}

}  // namespace moebius
