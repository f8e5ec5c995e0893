// Where the time went, accumulated span by span: busy time by kind, exposed and hidden communication, bubble,
// trust.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hw/units.h"
#include "workloads/schedule/exposure.h"
#include "workloads/schedule/pass_times.h"
#include "workloads/schedule/timeline.h"
#include "workloads/schedule/work.h"

namespace moebius {

// Seconds per rank, averaged over all ranks of the run (a class counts with its size; a class of several
// members is seen as its average member). Each moment of a rank is one of three: some compute op runs; else a
// transfer runs (exposed); else it is idle. So: time under compute + sum of `exposed` + `idle` = makespan.
struct Breakdown {
  std::array<double, kNumOpKinds> compute{};  // busy, by kind
  std::array<double, kNumOpKinds>
      communication{};  // busy with transfers, by kind, exposed or not; waiting is not busy
  std::array<double, kNumOpKinds> exposed{};  // of it: no compute op of the rank ran meanwhile
  std::array<double, kNumOpKinds> waiting{};  // of `idle`: an op of this kind waited for its peers
  std::array<double, kNumPhases> compute_by_phase{}, exposed_by_phase{};
  std::array<double, kNumGroupRoles> communication_by_group{}, exposed_by_group{};  // whom they meet
  double recompute = 0;  // of compute: activations computed again in the reverse pass
  double optimizer = 0;  // compute and exposed communication of Phase::kOptimizer
  double idle = 0;       // neither: the pipeline bubble and waiting for peers
};

// Seconds of compute times their expected relative error: what has one origin and one kind errs together.
inline constexpr int kNumComputeKinds = static_cast<int>(OpKind::kDispatch);
using ErrorSeconds = std::array<std::array<double, kNumComputeKinds>, kNumOrigins>;

// Busy seconds of ranks by where their costs come from, those times the expected relative error of each, and
// what they drew.
struct BusySources {
  std::array<double, kNumOrigins> seconds{};
  double error = 0;
  double joules = 0;  // that the work drew, beside what boards draw idle; of boards whose power is known
  void add(const BusySources& other, double times);
  double busy() const;
};

struct Metrics {
  Time makespan;
  Breakdown breakdown;
  std::vector<Breakdown> by_class;
  PassSeconds passes;
  std::vector<ErrorSeconds> errors_by_class;            // of one rank of the class
  double flops = 0;                                     // over all ranks
  std::array<double, kNumOpKinds> flops_by_kind{};      // of it
  double sent_bytes = 0;                                // payload that left a rank (work.h), over all ranks
  std::array<double, kNumOrigins> seconds_by_origin{};  // of all busy time, over all ranks
  double mean_error = 0;                                // expected relative error, weighted by time
  std::int64_t spans = 0;
  std::vector<double> joules_by_class;  // as BusySources has them, over all ranks of a class

  double joules() const;
};

// What is counted of an op, apart from the ops themselves, which fill the caches.
struct CountedOp {
  ClassWork work;  // over all ranks of a class
  OpKind kind = OpKind::kAdd;
  Phase phase = Phase::kForward;
  GroupRole group = GroupRole::kNone;
  bool computes = false;    // on the device
  bool recomputes = false;  // activations, in the reverse pass
};
CountedOp counted(const Op& op, const ClassWork& work);

class MetricsAccumulator {
 public:
  explicit MetricsAccumulator(std::vector<std::int32_t> class_sizes);
  // Spans of one lane of a class come in the order of time.
  void add(const Span& span, const CountedOp& op);
  // By the work of one rank of a class.
  void drew(std::int32_t rank_class, double joules) {
    metrics_.joules_by_class[rank_class] += sizes_[rank_class] * joules;
  }
  BusySources busy_so_far() const { return {metrics_.seconds_by_origin, error_seconds_, metrics_.joules()}; }
  Metrics finish(Time end);  // call once

 private:
  struct ClassState {
    Breakdown sums;
    ErrorSeconds errors{};
    Exposure exposure;
    struct LaneState {
      Time end, lag;  // of the last op; how much earlier the average member had ended it
    };
    std::array<LaneState, kNumLanes> lanes;
  };
  static Interval average_member(const Span& span, ClassState& state);
  static Time average_arrival(const Span& span, ClassState& state);
  void add_busy(const Span& span, std::int32_t members, double seconds);

  std::vector<std::int32_t> sizes_;
  std::vector<ClassState> classes_;
  Metrics metrics_;
  double error_seconds_ = 0;
};

}  // namespace moebius
