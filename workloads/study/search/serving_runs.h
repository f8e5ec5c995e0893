// Plans of a service carried out, and the highest rate of requests at which a plan keeps its promises.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "workloads/serving/system/step_surface.h"
#include "workloads/study/search/search_request.h"
#include "workloads/study/search/serving_demand.h"
#include "workloads/study/search/serving_score.h"

namespace moebius {

class ServingRuns {
 public:
  // Of the first requests of the traffic, `most`. `late`: from then on no further rate is tried; by several
  // threads.
  ServingRuns(const SearchRequest& request, const ServingScore& score, const StartExecutor& start,
              std::int64_t most, std::function<bool()> late = [] { return false; })
      : request_(request), score_(score), start_(start), most_(most), late_(std::move(late)) {}

  // By several threads. Nothing where the plan does not fit. With SearchRequest::attainment of the run at the
  // highest rate, where `from` is a first guess: so many times that of the traffic; once it is late, at the
  // highest of those that ran.
  std::optional<PlanFigures> figures(const Document& plan, double from = 1) const;

 private:
  struct Run {
    PlanFigures figures;
    ServingDemand demand;
  };
  Run run(const Document& plan, StepTimings& timings, double times_faster) const;
  PlanFigures at_highest_rate(const Document& plan, StepTimings& timings, double from) const;

  const SearchRequest& request_;
  const ServingScore& score_;
  StartExecutor start_;
  std::int64_t most_;
  std::function<bool()> late_;
};

}  // namespace moebius
