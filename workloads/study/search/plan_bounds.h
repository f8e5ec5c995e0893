// What a plan of a space cannot be better than, and cannot hold less than, from coarse to fine.
#pragma once

#include <string>

#include "workloads/study/search/group_bound.h"
#include "workloads/study/search/plan_score.h"
#include "workloads/study/search/room_bound.h"
#include "workloads/study/search/step_bound.h"
#include "workloads/study/search/training_space.h"

namespace moebius {

// All by several threads. Scores as PlanScore's.
class PlanBounds {
 public:
  // With `transfers` a plan's own bound knows what communication takes on an idle network, without them how
  // long its bytes take, as all others.
  PlanBounds(const TrainingSpace& space, const PlanScore& score, const std::string& data,
             const KnowTransfers& transfers = {});

  // Whether they hold for this scenario: they are told for one kind of chip, whole rows, a step of training
  // and experts that take every token.
  bool hold() const;

  // Of all plans with these degrees, from single layers. `coarse`: without drawing routes.
  double of_group(const PlanDegrees& degrees, bool coarse);
  // Of those of a bundle's variant, the same.
  double of_variant(const PlanDegrees& degrees, int bundle);

  // Of `bundles`, all of one variant, those that fit by what single layers hold.
  std::vector<int> with_room(const PlanDegrees& degrees, const std::vector<int>& bundles);

  // Of a bundle's variant, from the passes of one rank in the middle of its pipeline; 0: the schedule has too
  // many to be looked at.
  double of_rank(const PlanDegrees& degrees, int bundle);

  // By its stages and its schedule.
  struct Stages {
    double score = 0;  // 0: the schedule has too many passes to be looked at
    StepBound step;
    PlanFacts facts;
  };
  // Of a bundle's variant: without shards and the optimizer, with no state on the host.
  Stages of_stages(const PlanDegrees& degrees, int bundle);
  // Whether a bundle of that variant holds more than a device has, whatever it shards.
  bool too_large(const Stages& variant, const TrainingPlan& plan) const;
  // Of the plan itself; its memory against that of a device.
  struct Plan {
    double score = 0;
    bool too_large = false;
  };
  Plan of_plan(const PlanDegrees& degrees, int bundle);

  std::size_t lowered() const { return probes_.lowered(); }

 private:
  double closed_form(const TrainingPlan& plan, const PlanDegrees& degrees, int switches, bool coarse = false);
  Stages stages_of(const TrainingPlan& plan, const TrainingWorkload& workload, Transfers transfers);
  double room(const TrainingPlan& plan) const;

  const TrainingSpace& space_;
  const PlanScore& score_;
  StageProbes probes_;
  GroupBound layers_;
  RoomBound rooms_;
  PassOrders orders_;
};

}  // namespace moebius
