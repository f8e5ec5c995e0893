// On which devices the ranks of a plan stand (/plan/placement). Ranks are logical; a placement is a
// permutation of them over the devices that the job may use, which on a cluster that others share are the
// ones left over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moebius {

struct RankPlacement {
  bool by_volume = false;             // found by what ranks send each other: study/placement/placement.h
  std::vector<std::int32_t> devices;  // that the job may stand on, ascending; empty: all
  std::vector<std::int32_t> ranks;    // the device of each rank; empty: rank i stands on device i

  bool any() const { return by_volume || !devices.empty() || !ranks.empty(); }
};

// "0-7, 24, 31-28" and back: runs of devices that follow one another, up or down.
std::string device_ranges(const std::vector<std::int32_t>& devices);
// Nothing for what is no such text, or names more than `most` devices or one that is not below `most`.
std::optional<std::vector<std::int32_t>> parse_device_ranges(std::string_view text, std::int64_t most);

}  // namespace moebius
