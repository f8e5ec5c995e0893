// What a search found: plans in order, how they were found, and what was not looked at.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/report/report_figures.h"
#include "workloads/study/study.h"

namespace moebius {

enum class SearchGoal : std::uint8_t { kStepTime, kTokensPerDollar, kTokensPerJoule };
const std::vector<std::pair<std::string, SearchGoal>>& search_goals();

// What a plan does, as one run of it says.
struct PlanFigures {
  double score = 0;           // lower is better; the goal's figure is shown instead
  double value = 0;           // the goal's figure: seconds, tokens per dollar, tokens per joule
  double step_time_s = 0;
  double tokens_per_s = 0;
  double memory_bytes = 0;    // of the fullest rank
  double usd_per_hour = 0;    // of the devices in use; 0: not known
  double expected_error = 0;  // of the step, relative; 0: not known
  // Seconds of a step, mean over ranks, by what they are lost to.
  std::vector<std::pair<std::string, double>> parts;
};

struct RankedPlan {
  std::string name;
  std::vector<Assignment> settings;
  double bound = 0;                 // score that it could not be below
  PlanFigures rough;                // at alpha-beta
  std::optional<PlanFigures> fine;  // at fluid

  const PlanFigures& best_known() const { return fine ? *fine : rough; }
};

struct SearchCounts {
  std::int64_t legal = 0;      // plans of the space
  std::int64_t groups = 0;     // of them, with the same degrees
  std::int64_t bounded = 0;    // ruled out by a lower bound of their time alone, or of their group's
  std::int64_t too_large = 0;  // ruled out by memory: by its lower bound, or exactly when they were to run
  std::int64_t rough = 0, fine = 0;  // carried out
  std::int64_t left = 0;             // neither: time was up
  std::int64_t lowered = 0;          // stages that bounds took
};

struct SearchResult {
  SearchGoal goal = SearchGoal::kStepTime;
  std::string scenario, file;
  std::uint64_t seed = 1;
  std::int64_t devices = 0;
  SearchCounts counts;
  std::vector<RankedPlan> plans;    // best first
  std::optional<RankedPlan> given;  // the scenario's own; nothing where it does not run
  std::string given_refusal;        // and why
  bool complete = true;             // no plan of the space is better by the rough clock
  std::string ended;                // else by what: "the time limit"
  double open_bound = 0;            // not complete: no plan's score is below
  double wall_s = 0, cpu_s = 0, max_rss_bytes = 0;
  std::vector<std::string> notes;  // on what the search kept fixed
};

// How a figure of the goal reads: "16.7 s", "3.2 M tokens/$".
std::string goal_text(SearchGoal goal, const PlanFigures& figures);

std::string to_text(const SearchResult& result, std::size_t most);
std::string to_json(const SearchResult& result);  // one object, ends with a newline
// Memory of the fullest rank against the goal's figure, every plan that ran; the Pareto front is joined.
std::string to_svg(const SearchResult& result);

// Numbers in `plans` of those that no other beats in both score and memory, by rising memory.
std::vector<std::size_t> pareto_front(const SearchResult& result);

}  // namespace moebius
