// What a report says of training that is more than all weights on rows of one sequence each: packed
// sequences, adapters, and the other phases of a step of reinforcement learning.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/report/report.h"
#include "workloads/training/packing.h"

namespace moebius {

// Of one step, mean over the steps; nothing where sequences are not packed.
std::optional<PackedTokens> packed_figures(const Report& report);

// Name, seconds, share of the step; in the order of the step, phases that take no time left out.
struct PhaseRow {
  std::string name;
  double seconds = 0, share = 0;
};
std::vector<PhaseRow> phase_rows(const ReinforcementFigures& figures);

// Keys and figures of the report as JSON.
using FigureRows = std::vector<std::pair<std::string, double>>;
FigureRows packing_rows(const PackedTokens& packed, double step_time_s);
FigureRows pass_rows(const PassSeconds& passes);  // what a rank's time is made of: the sum is the step
FigureRows reinforcement_rows(const ReinforcementFigures& figures);
// The objects of those that the job has, by their keys in the report.
std::vector<std::pair<std::string, FigureRows>> kind_rows(const Report& report, double step_time_s);

std::string adapters_text(const Report& report);                     // empty where there are none
std::string packing_text(const Report& report, double step_time_s);  // empty where there is none
std::string reinforcement_text(const Report& report);

}  // namespace moebius
