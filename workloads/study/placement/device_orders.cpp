#include "workloads/study/placement/device_orders.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

namespace moebius {
namespace {

using Devices = std::vector<std::int32_t>;
constexpr int kLevels = 4;  // region, pod, leaf, node

// Where the first device of its node stands: the others hang on other rails or planes of the same places.
int place_at(const Fabric& fabric, std::int32_t device, int level) {
  const int first = device - fabric.standing(device).local;
  const Fabric::Standing standing = fabric.standing(first);
  const std::array<int, kLevels> places{standing.region, standing.pod, standing.leaf, standing.node};
  return places[level];
}

void take(const Fabric& fabric, const Devices& devices, int level, std::size_t wanted, Devices& taken) {
  if (level == kLevels) {
    taken.insert(taken.end(), devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(wanted));
    return;
  }
  std::map<int, Devices> by_place;
  for (const std::int32_t device : devices) by_place[place_at(fabric, device, level)].push_back(device);
  std::vector<Devices> places;
  for (auto& [place, held] : by_place) places.push_back(std::move(held));
  std::stable_sort(places.begin(), places.end(),
                   [](const Devices& a, const Devices& b) { return a.size() > b.size(); });
  while (wanted > 0) {
    // The last one that holds all: they are sorted.
    const auto end = std::partition_point(places.begin(), places.end(),
                                          [&](const Devices& held) { return held.size() >= wanted; });
    const auto chosen = end == places.begin() ? places.begin() : end - 1;
    const std::size_t part = std::min(wanted, chosen->size());
    take(fabric, *chosen, level + 1, part, taken);
    wanted -= part;
    places.erase(chosen);
  }
}

// Of each node as many devices as are a multiple of the unit.
Devices in_units(const Fabric& fabric, const Devices& free, int unit) {
  Devices devices;
  for (std::size_t i = 0; i < free.size();) {
    std::size_t end = i;
    while (end < free.size() && fabric.node_of(free[end]) == fabric.node_of(free[i])) ++end;
    const std::size_t kept = (end - i) / unit * unit;
    devices.insert(devices.end(), free.begin() + static_cast<std::ptrdiff_t>(i),
                   free.begin() + static_cast<std::ptrdiff_t>(i + kept));
    i = end;
  }
  return devices;
}

}  // namespace

std::vector<DeviceOrder> device_orders(const Fabric& fabric, const Devices& free, int ranks,
                                       const std::vector<int>& units) {
  std::vector<DeviceOrder> orders{{"first devices", Devices(free.begin(), free.begin() + ranks)}};
  const auto add = [&](DeviceOrder order) {
    const auto same = [&](const DeviceOrder& known) { return known.devices == order.devices; };
    if (std::none_of(orders.begin(), orders.end(), same)) orders.push_back(std::move(order));
  };
  std::vector<int> all_units = units;
  all_units.push_back(1);
  for (const int unit : all_units) {
    const Devices devices = in_units(fabric, free, unit);
    if (static_cast<int>(devices.size()) < ranks) continue;
    DeviceOrder packed{unit > 1 ? fmt::format("fewest places, {} of a node together", unit) : "fewest places",
                       {}};
    take(fabric, devices, 0, ranks, packed.devices);
    DeviceOrder ascending{packed.how + ", ascending", packed.devices};
    std::sort(ascending.devices.begin(), ascending.devices.end());
    add(std::move(ascending));
    add(std::move(packed));
  }
  return orders;
}

}  // namespace moebius
