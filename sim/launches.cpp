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

// One that the host makes for op `index`: for a graph at its first op.
bool calls_for(const Fragment& fragment, std::size_t index) {
  const std::int32_t graph = fragment.graph_of(index);
  return graph < 0 ? is_call(fragment.ops[index]) : graph == static_cast<std::int32_t>(index);
}

double eager_calls(const Fragment& fragment, std::size_t index) {
  const bool prepared = !fragment.captured.empty() && fragment.captured[index].prepared;
  return prepared ? prepared_calls(fragment.ops[index]) : host_calls(fragment.ops[index]);
}

}  // namespace

int Launches::launches_of(const Fragment& fragment, std::size_t op) {
  switch (fragment.launch) {
    case LaunchMode::kHidden:
    case LaunchMode::kGraph:
      return 0;
    case LaunchMode::kKernel:
      return fragment.graph_of(op) >= 0 || is_kernel(fragment.ops[op]) ? 1 : 0;
    case LaunchMode::kEager:
      return is_call(fragment.ops[op]) ? 1 : 0;
  }
  return 0;
}

bool Launches::reads_counts(const Fragment& fragment, std::size_t op) {
  const Op& read = fragment.ops[op];
  return fragment.launch == LaunchMode::kEager && fragment.graph_of(op) < 0 && host_reads_counts(read) &&
         !fragment.routes[read.route]->spec().filled;
}

// Of op `index`, or of the graph that begins with it.
Time Launches::time_of(const Fragment& fragment, std::size_t index) const {
  if (fragment.graph_of(index) >= 0) return launch_ + kKernelInGraph * fragment.captured[index].kernels;
  const double calls = fragment.launch == LaunchMode::kEager ? eager_calls(fragment, index)
                                                             : kernel_calls(fragment, fragment.ops[index]);
  return {static_cast<std::int64_t>(calls * static_cast<double>(launch_.ns))};
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
        if (fragment.graph_of(op) >= 0 ? !calls_for(fragment, op) : !is_kernel(fragment.ops[op])) continue;
        push(host, {slot, static_cast<std::int32_t>(op)}, time_of(fragment, op), now);
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
    const Fragment& fragment = *eager.fragment;
    const auto end = static_cast<std::int32_t>(fragment.ops.size());
    while (eager.next < end && !calls_for(fragment, eager.next)) ++eager.next;
    if (eager.next == end) {
      class_of_slot_[eager.slot] = -1;
      host.eager.pop_front();
      continue;
    }
    if (reads_counts(fragment, eager.next) && eager.reached != eager.next) return;
    host.launching = true;
    const Launched launched{eager.slot, eager.next++};
    return push(host, launched, time_of(fragment, launched.op), now);
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
