// Flows in a collective scenario: the part of its reader.
#pragma once

#include "workloads/scenario/scenario.h"
#include "workloads/scenario/section.h"

namespace moebius {

// Declares the keys of flows; sets `work.flows` where the operation is "flows" (`flows`), and refuses keys
// that count for nothing otherwise.
void read_flows(Section& section, bool flows, CollectiveWorkload& work);
void check_flows(const CollectiveWorkload& work, const Document& document);

}  // namespace moebius
