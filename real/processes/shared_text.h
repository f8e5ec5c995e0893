// One text for all processes of a launcher, and nothing more: what they then do, they do without MPI, so that
// one which dies does not end the others.
#pragma once

#include <memory>
#include <string>

#include "real/processes/transport.h"

namespace moebius {

// The number of this process, by the variables that a launcher leaves; 0 without one.
int launched_self();

// Everyone calls it, once; returns the text of the first one. All must be alive until it returns.
std::string shared_text(std::unique_ptr<Transport> transport, const std::string& text);

}  // namespace moebius
