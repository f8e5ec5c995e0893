// Key `experts` of a workload: how popular the experts are.
#pragma once

#include <string>

#include "models/model.h"
#include "workloads/routing/popularity.h"
#include "workloads/scenario/section.h"

namespace moebius {

// `steps`: of a workload whose microbatches and steps may differ, as in training.
Popularity read_popularity(Section section, bool steps);

// The key `popularity` of that object alone.
Popularity read_popularity_form(Section& section);

// Token copies that experts got, as CSV with the header "step,layer,expert,tokens": rows in any order, an
// expert of a layer at most once a step (absent: none), everything counted from 0, layers as the model counts
// them, its MTP modules last. Every step has the same layers. input_error names the file and line.
RecordedLoadsPtr read_recorded_loads(const std::string& path);

// Whether recorded counts are those of the model's layers and experts; a sentence when they are not.
std::string problem_of(const Popularity& popularity, const Model& model);

}  // namespace moebius
