// Layers of a served model on several stages (`pp` of a phase): what goes with them.
#pragma once

#include "workloads/scenario/scenario.h"

namespace moebius {

constexpr int kMostStages = 1024;

// The pointer to the first phase that has several; "": none has.
const char* stages_given(const ServicePlan& service);

// What does not go together with several stages is input_error. After set_phases().
void check_served_stages(const Scenario& scenario, const Document& document);

}  // namespace moebius
