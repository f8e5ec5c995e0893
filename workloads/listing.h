// What the catalogs hold, as tables for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hw/catalog.h"
#include "models/model.h"
#include "workloads/show_network.h"

namespace moebius {

struct Shelves {
  const Catalog& hardware;
  const ModelCatalog& models;
};

// The names that `list` takes, in the order of its help.
std::vector<std::string> listable();
// One table; input_error with the known names when `what` is not one of listable().
std::string list_text(std::string_view what, const Shelves& shelves);
// An accelerator, node, fabric, storage device or model by id or alias, every fact with its source and
// status; input_error with the nearest name when there is none. A fabric also at the size that the view says.
// A name that ends in ".json" is a scenario: its network.
std::string show_text(const std::string& name, const Shelves& shelves, const NetworkView& view = {});

}  // namespace moebius
