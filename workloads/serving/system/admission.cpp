#include "workloads/serving/system/admission.h"

#include <algorithm>
#include <optional>

namespace moebius {
namespace {

bool in_time(Router& router, const Location& at, const RouteRequest& request, Time now) {
  const ServiceGoal& goal = request.of->goal;
  if (!goal.given()) return true;
  const Forecast forecast = router.forecast(at, request, now);
  if (goal.ttft.ns > 0 && request.waited + forecast.first_token > goal.ttft) return false;
  if (goal.tpot.ns == 0) return true;
  if (forecast.per_token.ns > 0) return forecast.per_token <= goal.tpot;
  const std::optional<Time> elsewhere = router.decoding_elsewhere(request, now);
  return !elsewhere || *elsewhere <= goal.tpot;
}

}  // namespace

bool admits(const AdmissionRules& rules, Router& router, const Replica& replica, const Location& at,
            const RouteRequest& request, Time now) {
  switch (rules.policy) {
    case AdmissionPolicy::kNone:
      return true;
    case AdmissionPolicy::kQueueLimit:  // those on their way there will wait before it
      return replica.load().waiting + replica.load().expected < rules.most_waiting;
    case AdmissionPolicy::kPredicted:
      return in_time(router, at, request, now);
  }
  return true;
}

}  // namespace moebius
