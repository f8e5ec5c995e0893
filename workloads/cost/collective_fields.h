// The constants of collectives by name, as hw/catalog/collectives.json writes them and fits vary them.
#pragma once

#include <span>
#include <string_view>

#include "workloads/cost/collective_constants.h"

namespace moebius {

enum class ConstantUnit : unsigned char { kMicroseconds, kGigabytesPerSecond, kNanosecondsPerRootKilobyte };
double in_si(ConstantUnit unit);  // of one such unit

template <class Row>
struct ConstantField {
  std::string_view key;  // ends in its unit: "launch_us"
  double Row::*field;
  ConstantUnit unit;
};

std::span<const ConstantField<LinkConstants>> link_fields();
std::span<const ConstantField<FrameworkConstants>> framework_fields();

}  // namespace moebius
