// The best plans of a serving scenario. What a group of plans can reach at best is told by the arithmetic of
// its pools, then by iterations of theirs that are timed, of each plan with its own limits; plans that no
// bound rules out run on the first requests of the traffic at the rough clock, the best of them on all of it
// at the finer one.
#pragma once

#include "workloads/study/search/search_request.h"
#include "workloads/study/search/space_file.h"

namespace moebius {

// run_error when no plan fits. Equal requests that come to their end give equal results. Where
// SearchRequest::attainment is above 0, the goal is goodput and its figure the highest rate of requests, in
// which the traffic as a whole is made faster or slower, at which that share of requests is given what it is
// promised.
SearchResult search_serving(const Document& base, const SpaceFile& space, const SearchRequest& request);

}  // namespace moebius
