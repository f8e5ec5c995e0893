// Whether /cluster/kernels names software whose kernels were measured on the chips of the cluster.
#pragma once

#include <string>
#include <vector>

#include "hw/profile.h"
#include "workloads/cost/cost_source.h"
#include "workloads/scenario/scenario.h"

namespace moebius {

// input_error at /cluster/kernels for a stack that no profile of these chips has (those in `data` among
// them), an op kind or a number format that is none.
void check_stacks(const Scenario& scenario, const std::string& data);

// The chip's profiles (those in `data` among them), the tables of the service's framework first where
// /cluster/kernels does not say whose count.
std::vector<Profile> profiles_for(const Scenario& scenario, const Accelerator& chip, const std::string& data);

// The kernels that count on a chip of these profiles: those of /cluster/kernels, and for the experts of a
// training job those of a library that training can run.
std::string kernels_for(const Scenario& scenario, const std::vector<Profile>& profiles);

// What shares a scale in the scenario's FP8 products, where no table knows them: of a training job what
// /plan/precision/scaling says, of a service what its precision does.
ProductScales product_scales(const Scenario& scenario);

}  // namespace moebius
