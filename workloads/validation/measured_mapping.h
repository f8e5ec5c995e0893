// What the columns of a table of measured rows are: the file given by `validate --mapping`. Its form is
// described in scenarios/validate/README.md.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hw/document.h"
#include "hw/reader.h"

namespace moebius {

// A place in the scenario, and what of the row goes there.
struct MappedValue {
  std::string pointer, formula;  // "4 * hidden"
  Place place;
};

// The words that a column may hold, and what each of them sets: pointer, JSON.
struct MappedWords {
  using Sets = std::vector<std::pair<std::string, std::string>>;
  std::string column;
  std::vector<std::pair<std::string, Sets>> words;
  Place place;
};

struct MappedFigure {
  std::string metric, formula, source, known_miss;
  double tolerance = 0;
  Place place;
};

struct MeasuredMapping {
  std::string file, name;
  std::vector<std::string> row_name;  // columns
  std::vector<std::string> fitted;    // names of rows that something of the scenario is fitted to
  Value scenario;                     // what rows fill
  std::vector<MappedValue> set;
  std::vector<MappedWords> choose;
  std::vector<MappedFigure> expect;
};

MeasuredMapping read_mapping(const std::string& file);

}  // namespace moebius
