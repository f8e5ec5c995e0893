// Messages of their own between devices, all begun at once: who sends how much to whom.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/units.h"

namespace moebius {

// kPermutation: every device sends one flow and receives one, a single cycle drawn from the seed. kIncast:
// `fan_in` devices, drawn from the seed, send to `receiver`. kAllToAll: every device to every other one.
// kList: as listed.
enum class FlowPattern : std::uint8_t { kPermutation, kIncast, kAllToAll, kList };
std::string_view to_string(FlowPattern pattern);  // "all-to-all"

struct DeviceFlow {
  std::int32_t from = 0, to = 0;  // devices, different
  Bytes bytes = {};
};

struct FlowsWorkload {
  FlowPattern pattern = FlowPattern::kPermutation;
  int fan_in = 0, receiver = 0;       // kIncast
  std::vector<DeviceFlow> list = {};  // kList
};

inline constexpr std::int64_t kMostFlows = 65536;  // of one scenario: each is an op of its own

std::int64_t num_flows(const FlowsWorkload& flows, int devices);
// `bytes` each, but for kList, over the first `devices` devices.
std::vector<DeviceFlow> flows_of(const FlowsWorkload& flows, int devices, Bytes bytes, std::uint64_t seed);

}  // namespace moebius
