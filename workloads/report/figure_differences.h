// Two runs by the figures of their report.json: what is left to compare where there are no ops to join.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "hw/document.h"

namespace moebius {

struct FigureDifference {
  std::string path;  // dotted: "cluster.effective_time.mean"
  double a = 0, b = 0;
};

struct FigureDifferences {
  // Those of the headline first, then by relative difference, whichever run has more; samples of series and
  // figures that are next to nothing last.
  std::vector<FigureDifference> rows;
  std::size_t same = 0;                // figures that agree
  std::size_t only_a = 0, only_b = 0;  // figures that one report has alone
};

// Numbers of both reports, those left out that say how the run was made and judged, not what came out.
FigureDifferences figure_differences(const Value& report_a, const Value& report_b);

// "+12.3%"; beyond ten times "x 25.1"; "-" where a has none of it.
std::string difference_text(const FigureDifference& row);

inline constexpr std::size_t kFiguresTold = 30;
// Of two runs' directories or timelines; input_error where a report is missing.
std::string compare_figures(const std::string& run_a, const std::string& run_b);

// Courses of a cluster and replays of a cache are told by figures alone, whatever their timelines keep.
bool kind_has_ops(std::string_view scenario_kind);

}  // namespace moebius
