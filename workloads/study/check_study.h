// What a study would carry out, without carrying it out.
#pragma once

#include <string>

#include "workloads/job.h"
#include "workloads/study/study.h"

namespace moebius {

// Whether the file says that it is a study; a file that cannot be read is none.
bool is_study(const std::string& path);

// Its values and points in words; the first points (at most 1,000) are read as scenarios. input_error of the
// first one that is none.
std::string checked_study(const Study& study, const Library& library);

// input_error with what is wrong with the first point when none of a thousand over the whole grid is a valid
// scenario.
void require_valid_point(const Study& study, const Library& library);

}  // namespace moebius
