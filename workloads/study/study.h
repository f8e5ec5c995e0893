// A study: one scenario with some of its values varied. Plain data, read from a study file:
//
//   {"moebius": 1, "kind": "study", "name": ..., "base": "scenario.json",
//    "vary": {"/json/pointer": [values]},            every combination of these
//    "cases": [{"/json/pointer": value, ...}],       times each of these
//    "uncertain": {"/json/pointer": {"low": a, "high": b}}, "samples": n,   times n draws of these
//    "seeds": [1, 2], "columns": ["step_time_s"]}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/document.h"
#include "hw/reader.h"

namespace moebius {

// A value of the scenario that takes several.
struct StudyAxis {
  std::string pointer;
  std::vector<std::string> values;  // as JSON texts
};

struct Assignment {
  std::string pointer, value;  // JSON text
};
// JSON text; of a string what stands between its quotes, unless that would read as something else ("true").
std::string plain(const std::string& json);

// A value that is not known exactly: drawn evenly between two numbers, or two quantities of one unit.
struct UncertainValue {
  std::string pointer;
  double low = 0, high = 0;
  std::string unit;    // what follows the number; empty: a bare number
  bool whole = false;  // whole numbers alone, both ends among them
};

struct Study {
  std::string file, name;
  Document base;                               // the scenario, with what it extends
  std::vector<StudyAxis> axes;                 // in the order of the file; the last one varies fastest
  std::vector<std::vector<Assignment>> cases;  // one without changes when there are none
  std::vector<UncertainValue> uncertain;
  std::int64_t samples = 1;
  std::vector<std::uint64_t> seeds;  // the base's own when none are given
  std::vector<std::string> columns;  // dotted paths into the report's JSON
  Place columns_at;

  std::int64_t points() const;
};

// Most points of one study.
inline constexpr std::int64_t kMostStudyPoints = 1'000'000;

// input_error for a file that is no study, whose base cannot be read, that varies a value twice or beside
// what holds it, or that has more than kMostStudyPoints points. Whether each point is a scenario shows when
// it is carried out.
Study load_study(const std::string& path);

std::string one_line(const Value& value);  // as JSON

// The values to try of key `vary` alone, of another kind of file that has it; none without the key.
std::vector<StudyAxis> read_varied(Reader& top);

}  // namespace moebius
