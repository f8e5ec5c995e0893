// Splits the time of one rank class, as its spans come in, into compute, communication that no compute hides,
// waiting that nothing hides, and the rest. Memory follows the number of unexplained gaps between compute
// ops, which is bounded.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "models/op_kind.h"
#include "workloads/schedule/op.h"

namespace moebius {

// Nanoseconds, half open.
struct Interval {
  std::int64_t start = 0, end = 0;
};

struct ExposedCommunication {
  Interval waiting;  // for peers
  Interval transfer;
  OpKind kind = OpKind::kSend;
  Phase phase = Phase::kForward;
  GroupRole group = GroupRole::kNone;
};

// Each moment counts once: as compute when any compute op runs; else as exposed transfer when any transfer
// runs; else as waiting when any communication op waits; else as nothing. Of several transfers in an
// interruption of compute, those that ended before compute went on come first, and of them the one that
// started first. Of several that wait the same, but receives and sends last: they are posted early, and what
// waits beside them is what compute waits for.
class Exposure {
 public:
  void compute(Interval interval);                              // in the order of their ends
  void communicate(const ExposedCommunication& communication);  // before the next compute op that ends later
  void finish(std::int64_t end);                                // of the run; nothing may be added any more

  // Nanoseconds; complete after finish().
  const std::array<std::int64_t, kNumOpKinds>& transfer() const { return transfer_; }
  const std::array<std::int64_t, kNumOpKinds>& waiting() const { return waiting_; }
  std::int64_t transfer_of_phase(Phase phase) const { return transfer_by_phase_[static_cast<int>(phase)]; }
  std::int64_t transfer_of_group(GroupRole group) const {
    return transfer_by_group_[static_cast<int>(group)];
  }
  std::int64_t computed() const { return computed_; }  // time in which any compute op ran

 private:
  // Time without compute or transfer; `waiter` is the kind of op that waits, or none.
  struct Gap {
    Interval interval;
    std::int16_t waiter = -1;
  };

  void settle(std::int64_t known_until);
  std::int64_t take(Interval interval, std::int16_t new_waiter);  // returns the nanoseconds it got

  std::array<std::int64_t, kNumOpKinds> transfer_{}, waiting_{};
  std::array<std::int64_t, kNumPhases> transfer_by_phase_{};
  std::array<std::int64_t, kNumGroupRoles> transfer_by_group_{};
  std::int64_t computed_ = 0;
  std::int64_t known_until_ = 0;               // compute is known up to here
  std::deque<Gap> gaps_;                       // ascending, disjoint
  std::vector<ExposedCommunication> pending_;  // may still be overlapped by compute that has not ended
};

}  // namespace moebius
