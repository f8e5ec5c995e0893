// What failed in a run and what became of it: for the report.
#pragma once

#include <string>
#include <vector>

#include "hw/units.h"

namespace moebius {

// One time that something failed. Times that the run did not reach are kForever.
struct FaultFacts {
  std::string kind, place;  // "link-down", "leaf 0 uplink 3"
  double left = 0;          // capacity or speed that it leaves: a share
  Time down = kForever;
  Time failover = kForever, last_failover = kForever;  // first and last traffic that moved to other ways
  Time detected = kForever, mitigated = kForever, up = kForever;
  double stalled_bytes = 0;  // that stood still because of it
  double moved_bytes = 0;    // that took other ways
  double detour_bytes = 0;   // of these: over other NICs of their nodes
};

// "link-down of leaf 0 uplink 3: down 4 ms, failover 6 ms, up 9 ms".
std::string one_line(const FaultFacts& fault);
std::string faults_text(const std::vector<FaultFacts>& faults);  // lines of the text report

}  // namespace moebius
