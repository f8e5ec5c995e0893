// What a search can be for and what it may be after: goals, and how its figures are shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moebius {

enum class SearchGoal : std::uint8_t {
  kStepTime,  // of training
  kTokensPerDollar,
  kTokensPerJoule,
  kGoodput,     // of a service: requests a second that are given what they are promised
  kThroughput,  // of a service: tokens of answers a second
};
// By their names on the command line, in the order of the enum.
const std::vector<std::pair<std::string, SearchGoal>>& search_goals();
const std::string& name_of(SearchGoal goal);

enum class FigureForm : std::uint8_t { kSeconds, kBytes, kShare, kNumber };

// A figure of plans by its key (PlanFigures::figures).
struct SearchColumn {
  std::string_view title, key;
  FigureForm form = FigureForm::kNumber;
  bool rough = false;  // of the rough run, though there is a finer one
};

struct SearchSubject {
  std::vector<SearchGoal> goals;      // the default first
  std::vector<SearchColumn> columns;  // of the table, beside the goal's figure
  SearchColumn across;                // of the picture; lower is better
  double across_scale = 1;            // of SI units, in the title's
  std::string_view parts;             // of what PlanFigures::parts are seconds
  std::string_view known, known_by;   // what PlanFigures::expected_error is of, and by what it is told
  std::string_view lowered;           // what bounds took
  int refine = 0;                     // plans that run at the finer clock, unless it is said
};
const SearchSubject& training_subject();
const SearchSubject& serving_subject();

std::string form_text(FigureForm form, double value);

}  // namespace moebius
