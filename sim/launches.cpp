#include "sim/launches.h"

#include <algorithm>

#include "workloads/cost/host_calls.h"

namespace moebius {
namespace {

bool is_kernel(const Op& op) {
  if (op.lane == Lane::kLoader) return false;
  return is_communication(op.kind) ? op.units > 0 : !op.fused;
}

bool is_call(const Op& op) {
  return op.lane != Lane::kLoader && !op.fused;
}

}  // namespace

int Launches::launches_of(const Fragment& fragment, const Op& op) {
  switch (fragment.launch) {
    case LaunchMode::kHidden:
    case LaunchMode::kGraph:
      return 0;
    case LaunchMode::kKernel:
      return is_kernel(op) ? 1 : 0;
    case LaunchMode::kEager:
      return is_call(op) ? 1 : 0;
  }
  return 0;
}

void Launches::add(const Fragment& fragment, int rank_class, std::int32_t slot, Time now) {
  Host& host = hosts_[rank_class];
  switch (fragment.launch) {
    case LaunchMode::kHidden:
      return;
    case LaunchMode::kGraph:
      return push(host, {slot, -1}, launch_, now);
    case LaunchMode::kKernel:
      for (std::size_t op = 0; op < fragment.ops.size(); ++op) {
        if (!is_kernel(fragment.ops[op])) continue;
        const double calls = kernel_calls(fragment, fragment.ops[op]) * static_cast<double>(launch_.ns);
        const Time launches{static_cast<std::int64_t>(calls)};
        push(host, {slot, static_cast<std::int32_t>(op)}, launches, now);
      }
      return;
    case LaunchMode::kEager:
      // One without a call may be over, and its slot another's, before the host would come to it.
      if (std::none_of(fragment.ops.begin(), fragment.ops.end(), is_call)) return;
      if (class_of_slot_.size() <= static_cast<std::size_t>(slot)) class_of_slot_.resize(slot + 1, -1);
      class_of_slot_[slot] = rank_class;
      host.eager.push_back({&fragment, slot});
      if (!host.launching) go_on(rank_class, now);
  }
}

void Launches::reached(int rank_class, Launched op, Time now) {
  Host& host = hosts_[rank_class];
  for (Eager& eager : host.eager)
    if (eager.slot == op.slot) eager.reached = op.op;
  if (!host.launching) go_on(rank_class, now);
}

// Begins the next call of the class's host, unless there is none or it reads what the device has not found
// yet.
void Launches::go_on(int rank_class, Time now) {
  Host& host = hosts_[rank_class];
  while (!host.eager.empty()) {
    Eager& eager = host.eager.front();
    const std::vector<Op>& ops = eager.fragment->ops;
    while (eager.next < static_cast<std::int32_t>(ops.size()) && !is_call(ops[eager.next])) ++eager.next;
    if (eager.next == static_cast<std::int32_t>(ops.size())) {
      class_of_slot_[eager.slot] = -1;
      host.eager.pop_front();
      continue;
    }
    const Op& op = ops[eager.next];
    if (host_reads_counts(op) && eager.reached != eager.next) return;
    host.launching = true;
    const double calls = host_calls(op) * static_cast<double>(launch_.ns);
    return push(host, {eager.slot, eager.next++}, Time{static_cast<std::int64_t>(calls)}, now);
  }
}

void Launches::push(Host& host, Launched launched, Time launch, Time now) {
  host.free = std::max(host.free, now) + launch;
  events_.push({host.free, next_id_++, launched.slot, static_cast<std::uint32_t>(launched.op)});
}

bool Launches::pop(Time now, Launched& launched) {
  if (next_event() > now) return false;
  launched = {events_.top().slot, static_cast<std::int32_t>(events_.top().version)};
  events_.pop();
  const auto slot = static_cast<std::size_t>(launched.slot);
  const int eager = slot < class_of_slot_.size() && launched.op >= 0 ? class_of_slot_[slot] : -1;
  if (eager >= 0) {
    hosts_[eager].launching = false;
    go_on(eager, now);
  }
  return true;
}

}  // namespace moebius
