// What a search varies, where its user says so: a file of JSON pointers into the scenario with the values to
// try.
//
//   {"moebius": 1, "kind": "search-space", "name": ..., "vary": {"/plan/pp/degree": [8, 16], ...}}
#pragma once

#include <string>
#include <vector>

#include "workloads/study/study.h"

namespace moebius {

struct SpaceFile {
  std::string file;
  std::vector<StudyAxis> axes;

  const StudyAxis* find(const std::string& pointer) const;
  // Whether an axis of the file lies at, above or below the pointer.
  bool touches(const std::string& pointer) const;
  // The whole numbers of an axis; input_error for other values.
  std::vector<int> numbers(const StudyAxis& axis, int least = 1) const;
  std::vector<bool> booleans(const StudyAxis& axis) const;  // the same of true and false
};

// input_error for a file that is none; an empty path: nothing is said.
SpaceFile load_space(const std::string& path);

}  // namespace moebius
