// The best plans of a training scenario. A bound of a plan gets tighter step by step: a group of degrees from
// single layers, the switches of a group from its stages and schedule, then the run itself; what a bound says
// is behind the best plans is never looked at again, so that the result is that of running all.
#pragma once

#include "workloads/study/search/search_request.h"
#include "workloads/study/search/training_space.h"

namespace moebius {

// run_error when no plan fits. Equal requests that come to their end give equal results.
SearchResult search_training(const Document& base, const SpaceFile& space, const SearchRequest& request);

}  // namespace moebius
