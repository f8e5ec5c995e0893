#include "sim/launches.h"

#include <algorithm>

namespace moebius {
namespace {

bool is_kernel(const Op& op) {
  if (op.lane == Lane::kLoader) return false;
  return is_communication(op.kind) ? op.units > 0 : !op.fused;
}

}  // namespace

int Launches::launches_of(const Fragment& fragment, const Op& op) {
  return fragment.launch == LaunchMode::kKernel && is_kernel(op) ? 1 : 0;
}

void Launches::add(const Fragment& fragment, int rank_class, std::int32_t slot, Time now) {
  switch (fragment.launch) {
    case LaunchMode::kHidden:
      return;
    case LaunchMode::kGraph:
      return push(rank_class, {slot, -1}, now);
    case LaunchMode::kKernel:
      for (std::size_t op = 0; op < fragment.ops.size(); ++op) {
        if (is_kernel(fragment.ops[op])) push(rank_class, {slot, static_cast<std::int32_t>(op)}, now);
      }
  }
}

void Launches::push(int rank_class, Launched launched, Time now) {
  Time& free = free_[rank_class];
  free = std::max(free, now) + launch_;
  events_.push({free, next_id_++, launched.slot, static_cast<std::uint32_t>(launched.op)});
}

bool Launches::pop(Time now, Launched& launched) {
  if (next_event() > now) return false;
  launched = {events_.top().slot, static_cast<std::int32_t>(events_.top().version)};
  events_.pop();
  return true;
}

}  // namespace moebius
