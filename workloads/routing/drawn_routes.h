// Routes that were drawn lately: many plans of one search, and the memory and the run of one plan, ask for the
// same ones.
#pragma once

#include "workloads/routing/routing.h"

namespace moebius {

// The route of a specification, drawn unless it is balanced and one of the last few of these. By several threads.
RoutePtr drawn_route(const RouteSpec& spec);

}  // namespace moebius
