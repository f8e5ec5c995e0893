// How unevenly the experts of a run were loaded, layer by layer and step by step.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "workloads/routing/routing.h"

namespace moebius {

// One layer in one step; with draws of each microbatch, the mean of them.
struct LayerLoad {
  int step = 0, layer = 0;
  double busiest_expert = 1;  // copies of the busiest expert over the mean
  double busiest_rank = 1;    // copies of the busiest rank over the mean: so much longer its experts compute
  int rank = 0;               // which one, in its expert-parallel group, of the last draw
  double dropped = 0;         // share of copies over capacity
  double padding = 0;         // share of the rows of experts that no token takes
};

class ExpertLoads {
 public:
  void add(const Route& route);  // each draw counts once, however often it is added

  bool empty() const { return sums_.empty(); }
  std::vector<LayerLoad> layers() const;  // by step, then layer
  // Mean over layers of (busiest expert / mean - 1), by step: MaxVio of Wang et al. 2024 (auxiliary-loss-free
  // balancing).
  std::vector<double> violations() const;
  double dropped_share() const;  // of all copies
  double padding_share() const;  // of the rows of all experts

 private:
  struct Sum {
    double busiest_expert = 0, busiest_rank = 0;
    int rank = 0, draws = 0;
    std::int64_t dropped = 0, copies = 0, padding = 0, rows = 0;
  };
  std::map<std::pair<int, int>, Sum> sums_;   // by step and layer
  std::set<std::tuple<int, int, int>> seen_;  // step, layer, microbatch
};

// One paragraph of the text report.
std::string loads_text(const ExpertLoads& loads);

}  // namespace moebius
