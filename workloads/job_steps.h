// Steps of a cluster's jobs, which scenarios of their own say.
#pragma once

#include "workloads/job.h"

namespace moebius {

// Reads those that `document` names into job.steps, null where a job names none; what checkpoints hold is
// then known, too. input_error for what is no training scenario, or stands on other nodes than the job.
void read_job_steps(const Document& document, const Library& library, Job& job);

}  // namespace moebius
