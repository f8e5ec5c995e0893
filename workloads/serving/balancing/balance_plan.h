// How a service places its experts, and how popular they are over time: plain data that the scenario reader
// checks.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/units.h"

namespace moebius {

enum class BalancePolicy : std::uint8_t {
  kNone,    // expert e of a layer stands in slot e
  kStatic,  // placed once, by the popularity at the beginning
  // Placed again and again by the load of a window, by the algorithm of expert_placement.h:
  kHierarchical,  // groups of experts stay on one node, where they divide over the nodes; else as kGlobal
  kGlobal,
  kGreedy,  // slots change while that saves more time than moving the weights takes (greedy_placement.h)
};

// How the tokens of an expert divide over its replicas.
enum class TokenSplit : std::uint8_t {
  kEven,  // equally
  kLoad,  // so that the loads of ranks come as near to each other as the placement lets them
};

struct ExpertBalancePlan {
  BalancePolicy policy = BalancePolicy::kNone;
  int redundant = 0;  // slots of a layer beyond one an expert, at least: all ranks have as many slots
  Time every = {};    // between two placements; the loops alone
  Time window = {};   // whose load counts
  TokenSplit split = TokenSplit::kEven;
  int slice = 1;            // layers whose weights move beside one iteration
  bool known_start = true;  // the first placement knows the popularity at the beginning; otherwise slot s
                            // holds expert s modulo their number
  bool loops() const { return policy > BalancePolicy::kStatic; }
  // Slots of a layer on so many ranks.
  int slots(int experts, int ranks) const {
    return policy == BalancePolicy::kNone ? experts : (experts + redundant + ranks - 1) / ranks * ranks;
  }
};

// How the popularity of experts changes while a service runs.
struct ExpertDrift {
  struct Domain {  // what is asked for changes: experts are as popular as before, but others
    Time at;
    int number = 0;  // equal numbers, equal popularity; 0: that of the beginning
  };
  Time correlation = {};             // see expert_course.h; zero: none
  Time recorded_step = {};           // how long each step of recorded counts lasts; zero: the first for ever
  std::vector<Domain> domains = {};  // by time
  bool changes() const { return correlation.ns > 0 || recorded_step.ns > 0 || !domains.empty(); }
};

}  // namespace moebius
