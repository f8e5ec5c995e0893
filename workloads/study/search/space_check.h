// Whether a scenario has the keys that a search varies.
#pragma once

#include "workloads/job.h"
#include "workloads/study/search/space_file.h"

namespace moebius {

// input_error at its place in the file of the space when a key that it varies is none of the scenario's kind.
// What values do to each other is the search's business.
void require_known_keys(const SpaceFile& space, const Document& scenario, const Library& library);

}  // namespace moebius
