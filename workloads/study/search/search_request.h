// What is asked of a search, whatever it is for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "workloads/perform/perform.h"
#include "workloads/study/search/search_result.h"
#include "workloads/study/search/transfer_times.h"

namespace moebius {

struct SearchRequest {
  SearchGoal goal = SearchGoal::kStepTime;
  StartExecutor rough, fine;  // several at a time
  KnowTransfers transfers;    // of training, at `rough`; null: bounds count bytes alone
  std::string data;           // of cost sources, as the executors'
  const Library* library = nullptr;
  int top = 10;                                          // plans whose order must be right
  int refine = 100;                                      // plans at most that run at `fine`
  double time_limit_s = 0;                               // 0: none
  bool prune = true;                                     // false: every legal plan runs
  std::int64_t requests = 2000;                          // of the traffic at most, in runs at `rough`
  double attainment = 0;                                 // > 0: the highest rate that keeps it is the figure
  std::function<bool()> stopped = [] { return false; };  // by the user; asked by several threads
  // `share`: how far it has come, 0..1, as far as that is known; `doing`: what it does and has found.
  std::function<void(double share, const std::string& doing)> progress = [](double, const std::string&) {};
};

}  // namespace moebius
