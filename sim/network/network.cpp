#include "sim/network/network.h"

#include "hw/error.h"

namespace moebius {
namespace {

[[noreturn]] void refuse() {
  throw run_error("this network shares no wires flow by flow, so that no flow can change its way: use fluid");
}

}  // namespace

std::vector<double> Network::left(std::int32_t, Time) {
  refuse();
}

void Network::replace(std::int32_t, const Step&, Time) {
  refuse();
}

}  // namespace moebius
