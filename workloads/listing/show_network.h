// `show` of a network: what it is made of, how far devices are apart, what it carries, and its picture.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hw/catalog.h"
#include "workloads/scenario/scenario.h"

namespace moebius {

// At what size a fabric of the catalog is shown, as on the command line; empty: not given.
struct NetworkView {
  std::string nodes;  // how many; else the most that fit with two tiers, or with as many as the fabric has
  std::string node;   // of which kind; else hgx-8
  std::string draw;   // a file to draw into (SVG)

  bool given() const { return !nodes.empty() || !node.empty() || !draw.empty(); }
};

struct ViewOption {
  std::string_view name;  // "nodes", on the command line "--nodes"
  std::string_view help;
  std::string NetworkView::*value;
};
std::span<const ViewOption> view_options();

// The fabric at the view's size; writes the drawing where one is wanted. input_error where so many nodes do
// not fit.
std::string network_text(const FabricSpec& spec, const Catalog& catalog, const NetworkView& view);
// The network of a scenario, whose size the view does not change.
std::string network_text(const Cluster& cluster, const NetworkView& view);

}  // namespace moebius
