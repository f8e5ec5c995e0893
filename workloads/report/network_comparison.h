// Two runs' networks beside each other: how long they took, how evenly ports were loaded.
#pragma once

#include <string>

namespace moebius {

// Of two runs' directories, from their report.json; empty where either has none or tells of no network.
std::string compare_networks(const std::string& run_a, const std::string& run_b);

}  // namespace moebius
