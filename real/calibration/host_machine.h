// The host as crosscheck simulates it when there is no profile: what it needs is measured on the spot.
#pragma once

#include "workloads/crosscheck/measured_machine.h"

namespace moebius {

// Exchange between ranks is measured at once (some two seconds), each op when the simulator first asks for
// it, with its operands in the caches; every distinct op once.
MeasuredMachine measure_host_machine();

}  // namespace moebius
