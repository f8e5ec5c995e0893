// What ranks of all processes hold, for the one that writes it down.
#pragma once

#include "real/companions.h"
#include "real/processes/processes.h"

namespace moebius {

// Every process calls it, with what tells of its own ranks. In the first one the result tells of all ranks'
// weights and optimizer states; in the others of none.
ReadHeld held_everywhere(Processes& processes, int ranks, const ReadHeld& here);

}  // namespace moebius
