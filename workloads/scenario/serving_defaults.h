// Keys of a serving plan that set others' defaults, and the number formats of its products.
#pragma once

#include "workloads/scenario/scenario_parts.h"
#include "workloads/serving/frameworks.h"

namespace moebius {

// `framework` of a plan.
const Framework& read_framework(Section& plan);
// `precision` of a plan.
Fp8Scales read_formats(Section precision, const Model& model, ServingPlan& plan);
// That the chips of all pools compute in these formats.
void check_formats_of_pools(const Scenario& scenario, const Document& document);

}  // namespace moebius
