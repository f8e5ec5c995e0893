// What the catalogs hold, as tables for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hw/catalog.h"
#include "models/model.h"
#include "workloads/listing/show_network.h"

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
// A name that ends in ".json" is a configuration of Hugging Face's: the model that is read of it; or a
// scenario: its network. `sets`: changes of the entry, as a scenario may make them, or of the scenario
// ("/power=500 W", "/cluster/fabric/nic=200 Gb/s").
std::string show_text(const std::string& name, const Shelves& shelves, const NetworkView& view = {},
                      const std::vector<std::string>& sets = {});
// The same of an accelerator alone; of a scenario that of its first pool.
Accelerator shown_accelerator(const std::string& name, const Shelves& shelves,
                              const std::vector<std::string>& sets);

}  // namespace moebius
