// Keys `sla` of a serving scenario and `admission` of its plan: which requests there are, what each is
// promised, which pools may serve it, and which are turned away.
#pragma once

#include "workloads/scenario/scenario_parts.h"

namespace moebius {

AdmissionRules read_admission(Section& plan);

// Fills service.classes from the rows of `sla`, whose pools it looks up among the phases.
void set_classes(Scenario& scenario, const Document& document);

}  // namespace moebius
