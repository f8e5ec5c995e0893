// The host as crosscheck simulates it when there is no profile: what it needs is measured on the spot.
#pragma once

#include "workloads/crosscheck/measured_machine.h"

namespace moebius {

// Exchange between ranks is measured at once (some two seconds), each op when the simulator first asks for
// it; every distinct op once. run_error: a job that this host does not hold, before anything is measured.
// Between two uses of an operand the ranks touch what they hold, and so does the measurement: where that fits
// in a cache, operands are found there.
MeasuredMachine measure_host_machine(const Job& job);

}  // namespace moebius
