// What a search found: plans in order, how they were found, and what was not looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/study/search/search_subject.h"
#include "workloads/study/study.h"

namespace moebius {

// What a plan does, as one run of it says.
struct PlanFigures {
  double score = 0;           // lower is better; the goal's figure is shown instead
  double value = 0;           // the goal's figure: seconds, tokens per dollar, requests a second
  double tie = 0;             // of equal scores, the lower one is better
  double times_faster = 1;    // than the scenario says its traffic came
  double expected_error = 0;  // see SearchSubject::known; 0: not known
  // By key of the JSON, in SI units and in its order.
  std::vector<std::pair<std::string_view, double>> figures;
  // Seconds by what they are spent on: see SearchSubject::parts.
  std::vector<std::pair<std::string, double>> parts;

  double figure(std::string_view key) const;  // 0 where there is none of that name
};

struct RankedPlan {
  std::string name;
  std::vector<Assignment> settings;
  double bound = 0;                      // score that it could not be below
  std::int32_t group = -1, bundle = -1;  // its numbers in the space; below 0: it is the scenario's own
  PlanFigures rough;                     // at alpha-beta
  std::optional<PlanFigures> fine;       // at fluid

  const PlanFigures& best_known() const { return fine ? *fine : rough; }
};

struct SearchCounts {
  std::int64_t legal = 0;      // plans of the space
  std::int64_t groups = 0;     // of them, with the same degrees
  std::int64_t bounded = 0;    // ruled out by a bound of their score alone, or of their group's
  std::int64_t too_large = 0;  // ruled out by memory: by its lower bound, or exactly when they were to run
  std::int64_t rough = 0, fine = 0;  // carried out
  std::int64_t refused = 0;          // by the scenario's reader when they were to run
  std::int64_t left = 0;             // neither: time was up
  std::int64_t lowered = 0;          // see SearchSubject::lowered
};

struct SearchResult {
  const SearchSubject* subject = &training_subject();
  SearchGoal goal = SearchGoal::kStepTime;
  std::string scenario, file;
  std::uint64_t seed = 1;
  SearchCounts counts;
  std::vector<RankedPlan> plans;    // best first
  std::optional<RankedPlan> given;  // the scenario's own; nothing where it does not run
  std::string given_refusal;        // and why
  std::string refusal;              // of the first of SearchCounts::refused
  bool complete = true;             // no plan of the space is better by the rough clock
  std::string ended;                // else by what: "the time limit"
  double open_bound = 0;            // not complete: no plan's score is below
  double wall_s = 0, cpu_s = 0, max_rss_bytes = 0;
  std::vector<std::string> notes;  // on what the search kept fixed, and what its figures mean
};

// How a figure of the goal reads: "16.7 s", "3.2 M tokens/$".
std::string goal_text(SearchGoal goal, const PlanFigures& figures);

std::string to_text(const SearchResult& result, std::size_t most);
std::string to_json(const SearchResult& result);  // one object, ends with a newline
// SearchSubject::across against the goal's figure, every plan that ran; the Pareto front is joined.
std::string to_svg(const SearchResult& result);

// Numbers in `plans` of those that no other beats in both score and SearchSubject::across, by the latter.
std::vector<std::size_t> pareto_front(const SearchResult& result);

}  // namespace moebius
