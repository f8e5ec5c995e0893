// What an executor meets for the first time takes longer: memory, parameters, code of kernels, routes. A run
// can begin with one step, or with one pass through its schedule, that is carried out like the others and not
// judged.
#pragma once

#include <functional>
#include <memory>

#include "workloads/crosscheck/recorded_run.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

// The schedule and then, when all of it is done, the same once more.
std::shared_ptr<const RecordedSchedule> twice(const RecordedSchedule& schedule);

// What remains of a run without some submissions: the others from 0 on, from the moment the first of their
// spans starts.
Timeline only(Timeline timeline, const std::function<bool(const SubmissionRow&)>& counts);

Time last_end(const Timeline& timeline);

}  // namespace moebius
