// `moebius compare`: two runs that were written to directories.
#pragma once

#include <string>

namespace moebius {

// Joined op by op; where they are of one schedule, also both critical paths and what explains the difference.
// A run is its directory or its timeline; errors as timeline_path() and MappedTimeline.
std::string compare_runs(const std::string& run_a, const std::string& run_b);

}  // namespace moebius
