// What a scenario says once it is read: the machines and every setting in use, stated defaults included.
#pragma once

#include <string>

#include "workloads/job.h"

namespace moebius {

std::string settings_text(const Scenario& scenario);
// What decides a run that carries out no schedule: every setting but names and what the timeline keeps.
std::string settings_hash(const Scenario& scenario);
// Also what would run, and the memory it needs.
std::string settings_text(const Job& job);

}  // namespace moebius
