// What ops wait for beside the writers of their operands (`after` of FragmentBuilder::emit): who writes ops
// of a fragment anew passes it on, for no operand says it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/schedule/fragment.h"

namespace moebius {

class StatedWaits {
 public:
  explicit StatedWaits(const Fragment& fragment);

  // Ops of the fragment that its op `op` waits for.
  std::span<const std::int32_t> of(std::int32_t op) const {
    return {waits_.data() + first_[op], waits_.data() + first_[op + 1]};
  }

  // Where the ops stand that are written anew; those that are not written (yet) hold up no one.
  void written(std::int32_t op, std::int32_t place) { place_[op] = place; }
  void none_written() { place_.assign(place_.size(), -1); }
  // The places of those that `op` waits for.
  std::vector<std::int32_t> places(std::int32_t op) const;

 private:
  std::vector<std::int32_t> first_, waits_;  // those of op i: [first_[i], first_[i + 1])
  std::vector<std::int32_t> place_;          // by op; -1: not written
};

}  // namespace moebius
