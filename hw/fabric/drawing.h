// Pictures of a fabric: one plane of it (the others are alike), tier over tier, the first and last switches
// of each. Counts stand beside the rows.
#pragma once

#include <string>
#include <vector>

#include "hw/fabric/fabric.h"

namespace moebius {

// What both pictures show.
struct Sketch {
  struct Pod {
    int region = 0;
    int leaves = 0, spines = 0;  // of one plane, twins counted
    int nodes = 0;
  };
  std::string title;
  std::string node;  // "hgx-8"
  int planes = 1, twins = 1, tiers = 0;
  int cores = 0;          // of one plane and region
  std::vector<Pod> pods;  // of all regions; with fewer than three tiers a region is one pod
  int regions = 1;
  // Node n of a pod hangs on the leaves of group n / nodes_of_group, so many of which stand one after the
  // other.
  int nodes_of_group = 1, leaves_of_group = 1;
  int nodes = 0, devices_per_node = 0;
  std::string nic, leaf_link, core_link, region_link;  // "46 GB/s"; empty: none
};
Sketch sketch_of(const Fabric& fabric, const std::string& node);

std::string text_drawing(const Sketch& sketch);  // no line wider than 110
std::string svg_drawing(const Sketch& sketch);   // a complete SVG document

}  // namespace moebius
