#include "workloads/scenario/placement_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/mixed_pools.h"

namespace moebius {
namespace {

constexpr std::string_view kAll = "all";
constexpr const char* kPlacement = "/plan/placement";

constexpr std::array kOrders{
    Named<bool>{"naive", false, "rank after rank in the order of the devices"},
    Named<bool>{"volume", true,
                "where what ranks send each other takes least time on the fabric, by an estimate; `moebius "
                "place` also simulates the best"},
};

std::int64_t devices_of(const Scenario& scenario) {
  std::int64_t devices = 0;
  if (scenario.cluster)
    for (const Pool& pool : scenario.cluster->pools) devices += pool.devices();
  return devices;
}

void check_ranges(const Section& section, std::string_view key, const std::string& text, std::int64_t most) {
  if (parse_device_ranges(text, most)) return;
  section.place_of(key).fail(
      fmt::format("expected runs of devices from 0 to {}, as \"0-7, 16-23\", found \"{}\"", most - 1,
                  text.size() > 40 ? text.substr(0, 40) + "..." : text));
}

// The value of a key as the scenario notes it; empty where there is no such key.
std::string setting_of(const Scenario& scenario, std::string_view key) {
  const std::string pointer = std::string(kPlacement) + "/" + std::string(key);
  for (const Setting& setting : scenario.settings) {
    if (setting.pointer != pointer || setting.value.size() < 2) continue;
    return setting.value.substr(1, setting.value.size() - 2);
  }
  return {};
}

std::vector<std::int32_t> devices_in(const std::string& text, std::int64_t most) {
  if (text.empty() || text == kAll) return {};
  const auto devices = parse_device_ranges(text, most);
  CHECK(devices.has_value(), text);
  return *devices;
}

}  // namespace

void read_placement(Section section, const Scenario& scenario) {
  section.choice<bool>("order", std::span<const Named<bool>>(kOrders), false, "which rank stands where");
  const std::string devices = section.text(
      "devices", std::string(kAll),
      "that the job may stand on, as \"0-7, 16-23\"; others have the rest. naive takes the first of them");
  const std::string ranks = section.text(
      "ranks", "", "the device of each rank, in the order of ranks, as `moebius place` writes them");
  const std::int64_t most = devices_of(scenario);
  if (most > 0 && devices != kAll) check_ranges(section, "devices", devices, most);
  if (most > 0 && !ranks.empty()) check_ranges(section, "ranks", ranks, most);
  section.finish();
}

RankPlacement placement_of(const Scenario& scenario) {
  const std::int64_t most = devices_of(scenario);
  RankPlacement placement;
  placement.by_volume = setting_of(scenario, "order") == kOrders[1].name;
  placement.devices = devices_in(setting_of(scenario, "devices"), most);
  placement.ranks = devices_in(setting_of(scenario, "ranks"), most);
  std::sort(placement.devices.begin(), placement.devices.end());
  return placement;
}

std::int64_t devices_for_ranks(const Scenario& scenario) {
  const std::size_t named = placement_of(scenario).devices.size();
  const std::int64_t all = devices_of(scenario);
  return named > 0 ? std::min(all, static_cast<std::int64_t>(named)) : all;
}

void check_placement(const RankPlacement& placement, const Scenario& scenario, const Document& document) {
  if (!placement.any()) return;
  const auto require = [&](bool holds, const char* key, const std::string& sentence) {
    if (!holds) place_at(document, std::string(kPlacement) + key).fail(sentence);
  };
  const int ranks = scenario.plan.ranks();
  const std::vector<std::int32_t>& devices = placement.devices;
  require(!several_kinds(*scenario.cluster), "",
          "ranks are placed on pools of one kind: expected no placement where chips differ");
  require(
      !scenario.plan.uneven_batches(), "",
      "ranks are placed where replicas take equal microbatches: expected /plan/dp/microbatches \"equal\"");
  require(std::adjacent_find(devices.begin(), devices.end()) == devices.end(), "/devices",
          "a device is named twice");
  require(devices.empty() || static_cast<int>(devices.size()) >= ranks, "/devices",
          fmt::format("{} ranks do not fit on {} devices", ranks, devices.size()));
  if (placement.ranks.empty()) return;
  require(!placement.by_volume, "/order",
          "\"ranks\" says where each rank stands: expected order \"naive\", found \"volume\"");
  require(static_cast<int>(placement.ranks.size()) == ranks, "/ranks",
          fmt::format("devices of {} ranks, but there are {}", placement.ranks.size(), ranks));
  std::vector<std::int32_t> sorted = placement.ranks;
  std::sort(sorted.begin(), sorted.end());
  require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), "/ranks",
          "two ranks stand on one device");
  require(devices.empty() || std::includes(devices.begin(), devices.end(), sorted.begin(), sorted.end()),
          "/ranks", "a rank stands on a device that is not among \"devices\"");
}

}  // namespace moebius
