// The best plans of a training scenario. Plans are taken in the order of what they could reach at best, a
// bound that gets tighter step by step: a group of degrees from single layers, the switches of a group from
// its stages and schedule, then the run itself; what a bound says is behind the best plans is never looked at
// again, so that the result is that of running all.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "workloads/perform.h"
#include "workloads/study/search/search_result.h"
#include "workloads/study/search/training_space.h"

namespace moebius {

struct SearchRequest {
  SearchGoal goal = SearchGoal::kStepTime;
  StartExecutor rough, fine;  // several at a time
  std::string data;           // of cost sources, as the executors'
  const Library* library = nullptr;
  int top = 10;                                          // plans whose order must be right
  int refine = 100;                                      // plans at most that run at `fine`
  double time_limit_s = 0;                               // 0: none
  bool prune = true;                                     // false: every legal plan runs
  std::function<bool()> stopped = [] { return false; };  // by the user
  std::function<void(double share)> progress = [](double) {};
};

// run_error when no plan fits. Equal requests that come to their end give equal results.
SearchResult search_training(const Document& base, const SpaceFile& space, const SearchRequest& request);

}  // namespace moebius
