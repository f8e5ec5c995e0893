// Plans of a service carried out, and the highest rate of requests at which a plan keeps its promises.
#pragma once

#include <optional>

#include "workloads/study/search/search_request.h"
#include "workloads/study/search/serving_demand.h"
#include "workloads/study/search/serving_score.h"
#include "workloads/study/search/surface_store.h"

namespace moebius {

class ServingRuns {
 public:
  // Of the first requests of the traffic, `most`; what iterations take is kept in `store`, or nowhere.
  ServingRuns(const SearchRequest& request, const ServingScore& score, const StartExecutor& start,
              std::int64_t most, SurfaceStore* store)
      : request_(request), score_(score), start_(start), most_(most), store_(store) {}

  // By several threads. Nothing where the plan does not fit. With SearchRequest::attainment of the run at the
  // highest rate, where `from` is a first guess: so many times that of the traffic.
  std::optional<PlanFigures> figures(const Document& plan, const SurfaceStore::Keys& keys,
                                     double from = 1) const;

 private:
  struct Run {
    PlanFigures figures;
    ServingDemand demand;
  };
  Run run(const Document& plan, const SurfaceStore::Keys& keys, double times_faster) const;
  PlanFigures at_highest_rate(const Document& plan, const SurfaceStore::Keys& keys, double from) const;

  const SearchRequest& request_;
  const ServingScore& score_;
  StartExecutor start_;
  std::int64_t most_;
  SurfaceStore* store_;
};

}  // namespace moebius
