// The other processes of a launcher, for a study.
#pragma once

#include "workloads/study/sweep.h"

namespace moebius {

SweepCompanions launched_companions();

}  // namespace moebius
