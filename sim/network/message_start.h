// What a transport that pulls does to the beginning of a message.
#pragma once

#include "hw/fabric/fabric.h"

namespace moebius {

// Seconds that a message takes, alone on the network, beyond its latency and its bytes at the rate of credit,
// which is what a fabric's wires carry. Up to a window goes out unasked at line rate, until the first credit
// is there; where that comes later than the window is sent, the sender waits. Negative where it never waits.
// 0 with an ideal transport and inside a node.
double start_of_message(const Fabric& fabric, int from, int to, double bytes);

}  // namespace moebius
