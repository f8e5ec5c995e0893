// Keys of /plan/ep about how many of a rank's tokens an expert takes, and what it then computes.
#pragma once

#include "workloads/scenario/scenario.h"
#include "workloads/scenario/section.h"

namespace moebius {

// `capacity`, `capacity_of`, `buffers`; the degree and the dispatch of `plan` are known, and what its
// framework says of these keys. Of that counts what an exchange can do: full buffers go by the library's
// all-to-all.
void read_capacity(Section& section, TrainingPlan& plan);

// That filled buffers have an exchange that sends such, and rows that can be counted.
void check_buffers(const Scenario& scenario, const Document& document);

}  // namespace moebius
