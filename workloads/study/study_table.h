// What came out of a study, combination by combination: draws and seeds of one combination are one row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/study/results_file.h"
#include "workloads/study/study.h"
#include "workloads/study/study_influence.h"

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

struct StudyTable {
  std::vector<std::string> columns;
  std::vector<CombinationRow> rows;                // those of which some point has ended
  std::vector<std::vector<Influence>> influences;  // by column, the largest share first
  std::int64_t points = 0, done = 0, failed = 0;
};

// input_error where every point is done and a column is in the report of none.
StudyTable table_of(const Study& study, const ResultsFile& results, std::int64_t number);

// What the study asks for and a point's report has not, as an error says it; empty: nothing.
std::string missing_column(const Study& study, const std::string& report);

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
