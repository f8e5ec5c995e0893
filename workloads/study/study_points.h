// The points of a study, by number: which values each takes, and the scenario that it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/study/study.h"

namespace moebius {

struct StudyPoint {
  std::int64_t index = 0;            // 0 .. study.points() - 1
  std::int64_t combination = 0;      // of axes and cases; points that differ in draw or seed only share it
  std::vector<Assignment> settings;  // what differs from the base, but for the seed
  std::uint64_t seed = 1;
};

// Draws of uncertain values depend on the number of the sample alone, so that every combination meets the
// same ones, and lie one in each of as many equal parts of the range (Latin hypercube).
StudyPoint point_of(const Study& study, std::int64_t index);

// The scenario of a point. input_error when a pointer leads through something that holds nothing.
Document scenario_of(const Study& study, const StudyPoint& point);

// What a result depends on, as 32 hexadecimal digits: the whole scenario with its changes, who carries it out
// (`means`, such as "sim fluid"), what the files say that it names, and the version of the program.
std::string key_of(const Document& scenario, const std::string& means);

// What a folder of --data says, for `means`: its .json files by name and contents, wherever it lies. Empty
// without a folder. What cannot be read is an input_error.
std::string data_mark(const std::string& data_dir);

// {"/plan/pp/degree": 4, ...}
std::string settings_json(const StudyPoint& point);

}  // namespace moebius
