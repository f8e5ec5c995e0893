// The tables that say which facts an entry of each catalog has, and the readers that walk them. `layers` is
// consumed: every key of every layer is asked for, and what remains is an error.
#pragma once

#include "hw/accelerator.h"
#include "hw/fabric/fabric.h"
#include "hw/facts.h"
#include "hw/node.h"

namespace moebius {

Accelerator read_accelerator(Layers& layers);  // without id and aliases, which hang on the entry's name
Node read_node(Layers& layers);
FabricSpec read_fabric(Layers& layers);
Storage read_storage(Layers& layers);

}  // namespace moebius
