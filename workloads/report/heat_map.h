// When which part of the network was busy, from a timeline's counters (timeline.counters in a scenario; their
// names are those of sim/network/network_counters.h).
#pragma once

#include <string>
#include <vector>

#include "workloads/schedule/timeline.h"

namespace moebius {

struct HeatMap {
  struct Row {
    std::string name;           // "leaf-up 3"; of several wires: "leaf-up 0..15"
    std::vector<double> share;  // of the capacity, mean over each column; of several wires the busiest one
  };
  struct Tier {
    std::string name;  // "leaf-up"
    std::vector<double> mean, max;
    std::vector<Row> wires;  // by index; neighbours share a row where there are more than `most_rows`
  };
  // When a fault began, changed or ended: a sample of the counter "fault leaf 0 uplink 3".
  struct Mark {
    Time time;
    std::string what;  // "leaf 0 uplink 3: 0% left"
  };
  std::vector<Mark> marks;  // by time
  Time begin, end;
  std::vector<Tier> tiers;  // in the order of the way: copies, scale-up, NIC, leaf, pod
  bool empty() const { return tiers.empty(); }
};

struct HeatMapSize {
  int columns = 160;
  int most_rows = 32;  // of one tier
};

// Empty when the timeline has no such counters.
HeatMap heat_map(const Timeline& timeline, HeatMapSize size = {});

std::string to_text(const HeatMap& map);  // two lines a tier: its mean and its busiest wire
std::string to_svg(const HeatMap& map, const std::string& title);

}  // namespace moebius
