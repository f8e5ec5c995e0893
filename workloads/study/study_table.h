// What came out of a study, combination by combination: draws and seeds of one combination are one row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/study/results_file.h"
#include "workloads/study/study.h"

namespace moebius {

// The values of one column in one combination.
struct ColumnSpread {
  std::int64_t count = 0;              // of points that have the value
  double mean = 0, low = 0, high = 0;  // low and high: p10 and p90, of few the least and the largest
};

struct CombinationRow {
  std::int64_t combination = 0;
  std::vector<Assignment> settings;  // of axes and cases
  std::vector<ColumnSpread> values;  // by column
  std::int64_t failed = 0;
  std::string failure;  // of the first one that did
};

// How much of a column's differences a varied value accounts for.
struct Influence {
  std::string pointer;  // "cases": they change several values at once
  double share = 0;     // of the variance between points: of means by value; of a drawn one, R squared
  // Over the mean of all: the mean at the last of its values less that at the first, in the order of `vary`;
  // of cases the largest less the least; of a drawn one what a straight line rises over its range.
  double effect = 0;
  std::optional<double> change =
      {};  // of a varied one: the mean at its last value over that at its first, less 1
};

struct StudyTable {
  std::vector<std::string> columns;
  std::vector<CombinationRow> rows;                // those of which some point has ended
  std::vector<std::vector<Influence>> influences;  // by column, the largest share first
  std::int64_t points = 0, done = 0, failed = 0;
};

// input_error where every point is done and a column is in the report of none.
StudyTable table_of(const Study& study, const ResultsFile& results, std::int64_t number);

// Rows in columns for people, at most `most` of them.
std::string to_text(const Study& study, const StudyTable& table, std::size_t most);
std::string to_json(const Study& study, const StudyTable& table);
// Every point in a line: number, settings, seed, status, columns, error.
std::string to_csv(const Study& study, const ResultsFile& results, std::int64_t number);
// Every column over the first varied value, a line for each combination of the others; knees are marked.
// run_error when there is nothing to draw.
std::string to_svg(const Study& study, const StudyTable& table);

// The end of a pointer that tells it from the others: "/plan/pp/degree" is "pp/degree" beside "tp/degree".
std::vector<std::string> short_names(const std::vector<std::string>& pointers);

}  // namespace moebius
