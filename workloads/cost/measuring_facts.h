// What a report says of measurements that its costs were made of.
#pragma once

#include <string>

namespace moebius {

struct MeasuringFacts {
  std::string device;
  std::string chip = {};  // OpBench::chip
  int ops = 0;            // distinct ones that costs were made of
  int from_journal = 0;   // of them, measured by an earlier run
  double seconds = 0;     // of wall time spent measuring the others
  double once = 0;        // seconds of one execution of each of the ops
};

}  // namespace moebius
