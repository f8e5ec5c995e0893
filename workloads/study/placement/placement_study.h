// Naive and found placements of a scenario, carried out: the finalists of the estimate are run by whoever
// carries out runs (the simulator), and the fastest one counts. The naive one is always among them, so that
// nothing slower is ever chosen.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "workloads/perform/perform.h"
#include "workloads/study/placement/placement.h"

namespace moebius {

struct PlacementStudy {
  struct Finalist {
    PlacedRanks placed;
    double step_seconds = 0;
    std::map<GroupRole, double> by_role;  // estimated seconds
  };
  std::string scenario, name;
  int ranks = 0, free = 0;
  std::uint64_t seed = 1;
  std::map<GroupRole, double> bytes;  // sent in a step, over all ranks
  std::vector<Finalist> finalists;    // fastest first
  Finalist naive;
  std::int64_t tried = 0;
  bool exact = false;

  const Finalist& best() const { return finalists.front(); }
  double gain() const { return naive.step_seconds / best().step_seconds; }
  // Of what the estimate counts: communication alone.
  double estimated_gain() const { return naive.placed.cost.seconds / best().placed.cost.seconds; }
};

struct PlacingRequest {
  Document scenario;  // as it is changed
  const Library& library;
  const StartExecutor& start;
  int finalists = 4;
};

// input_error for a scenario that is no training, run_error where it does not fit.
PlacementStudy study_placement(const PlacingRequest& request);

std::string placement_text(const PlacementStudy& study);
std::string placement_json(const PlacementStudy& study);
// A scenario that extends `file` by the best placement, to be written at `path`.
std::string placed_scenario(const PlacementStudy& study, const std::string& file, const std::string& path);
// The whole of one that was changed, to be written at `path`.
std::string placed_scenario(const PlacementStudy& study, const Document& changed, const std::string& path);

// One fragmented cluster each, by its number: naive against found.
struct FragmentedGain {
  std::string name, how;
  bool whole_nodes = true;
  double naive_seconds = 0, placed_seconds = 0;    // of a step
  double naive_estimate = 0, placed_estimate = 0;  // of its communication
  double gain() const { return naive_seconds / placed_seconds; }
};
std::vector<FragmentedGain> study_fragmented(std::uint64_t first, int count, const Library& library,
                                             const StartExecutor& start);
// What the platform publishes of placement by a cost model: over 2x, end to end, nothing else said.
inline constexpr double kPublishedGain = 2;
double share_at_least(const std::vector<FragmentedGain>& gains, double gain);  // of the cases
std::string fragmented_text(const std::vector<FragmentedGain>& gains);
std::string fragmented_json(const std::vector<FragmentedGain>& gains);

}  // namespace moebius
