// A cluster over weeks: the keys of its scenario, `operations` and `jobs`.
#pragma once

#include "workloads/scenario/scenario.h"
#include "workloads/scenario/section.h"

namespace moebius {

// Into scenario.operations; `models` is null when describing.
void read_operations(Section& top, Scenario& scenario, const ModelCatalog* models);
// Relations between keys: jobs and spares fit on the nodes, each job says what it takes.
void check_operations(const Scenario& scenario, const Document& document);

}  // namespace moebius
