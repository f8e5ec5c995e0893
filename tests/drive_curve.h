// A curve as measuring a drive gives it, of two sizes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hw/device_figures.h"

namespace moebius::test {

inline TransferCurve drive_curve(std::string name, std::vector<double> seconds, double latency) {
  TransferCurve result;
  result.name = std::move(name);
  result.bytes = {4096, 1 << 20};
  result.seconds = std::move(seconds);
  result.latency = latency;
  return result;
}

}  // namespace moebius::test
