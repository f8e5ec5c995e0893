#include "workloads/scenario/flow_pattern.h"

#include <numeric>
#include <utility>

#include "workloads/routing/random_stream.h"

namespace moebius {
namespace {

// One cycle through all (Sattolo), so that no one sends to itself.
std::vector<DeviceFlow> permutation(int devices, Bytes bytes, RandomStream& random) {
  std::vector<std::int32_t> to(devices);
  std::iota(to.begin(), to.end(), 0);
  for (int i = devices - 1; i > 0; --i) std::swap(to[i], to[random.below(static_cast<std::uint32_t>(i))]);
  std::vector<DeviceFlow> flows;
  for (int from = 0; from < devices; ++from) flows.push_back({from, to[from], bytes});
  return flows;
}

std::vector<DeviceFlow> incast(const FlowsWorkload& pattern, int devices, Bytes bytes, RandomStream& random) {
  std::vector<std::int32_t> others;
  for (int device = 0; device < devices; ++device)
    if (device != pattern.receiver) others.push_back(device);
  std::vector<DeviceFlow> flows;
  for (int i = 0; i < pattern.fan_in; ++i) {
    const auto left = static_cast<std::uint32_t>(others.size()) - static_cast<std::uint32_t>(i);
    std::swap(others[i], others[i + random.below(left)]);
    flows.push_back({others[i], pattern.receiver, bytes});
  }
  return flows;
}

// Each begins with its neighbour, so that no receiver is everyone's first.
std::vector<DeviceFlow> all_to_all(int devices, Bytes bytes) {
  std::vector<DeviceFlow> flows;
  for (int from = 0; from < devices; ++from)
    for (int on = 1; on < devices; ++on) flows.push_back({from, (from + on) % devices, bytes});
  return flows;
}

}  // namespace

std::int64_t num_flows(const FlowsWorkload& flows, int devices) {
  switch (flows.pattern) {
    case FlowPattern::kPermutation:
      return devices;
    case FlowPattern::kIncast:
      return flows.fan_in;
    case FlowPattern::kAllToAll:
      return std::int64_t{devices} * (devices - 1);
    case FlowPattern::kList:
      return static_cast<std::int64_t>(flows.list.size());
  }
  return 0;
}

std::vector<DeviceFlow> flows_of(const FlowsWorkload& flows, int devices, Bytes bytes, std::uint64_t seed) {
  RandomStream random(seed);
  switch (flows.pattern) {
    case FlowPattern::kPermutation:
      return permutation(devices, bytes, random);
    case FlowPattern::kIncast:
      return incast(flows, devices, bytes, random);
    case FlowPattern::kAllToAll:
      return all_to_all(devices, bytes);
    case FlowPattern::kList:
      return flows.list;
  }
  return {};
}

}  // namespace moebius
