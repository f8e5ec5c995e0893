// One chip as the programmer sees it: peaks, memory, cores, links, power, price. All numbers come from
// hw/catalog/accelerators.json, each with its source and status; this struct holds the values in use.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hw/dtype.h"
#include "hw/units.h"

namespace moebius {

// Where a catalog number comes from and how far to trust it.
struct Fact {
  std::string name;  // "memory_rate"
  double value = 0;  // SI units
  double low = 0;    // range to sweep; equal to value when none is known
  double high = 0;
  std::string source;  // key of the catalog's "sources"; "scenario" when the user's file states it
  std::string status;  // published | measured | vendor claim | third party | from memory | estimate | given
  std::string note;
  std::string text;       // the value as written: "3.35 TB/s"
  std::string file = {};  // that states it
};

struct Accelerator {
  std::string id;                           // "h800-sxm"
  std::vector<std::string> aliases;         // names used in papers and data tables
  std::vector<std::string> bases = {};      // catalog ids that its entry stands on, the nearest first
  std::vector<std::string> same_as = {};    // of those the ones that it differs from in price alone
  std::string vendor;                       // "NVIDIA"
  std::string architecture;                 // "hopper": kernels' tile shapes and constants hang on it
  std::array<FlopRate, kNumDTypes> peak{};  // dense; zero when the chip has no native arithmetic of that type
  Bytes memory;
  ByteRate memory_rate;
  Bytes l2;               // zero when unknown
  int cores = 0;          // SMs, cube cores, clusters: what a compute kernel's tiles are spread over
  int general_cores = 0;  // vector or general cores that work beside `cores`; zero: there are none apart
  bool independent_engines = false;  // communication and vector work do not take from `cores`
  ByteRate link_rate;                // scale-up link, per direction, over all peers; zero: none, PCIe is used
  double link_efficiency =
      0;                      // achieved share of link_rate (of host_rate without a link) for large transfers
  int link_domain = 1;        // accelerators in one scale-up domain
  bool link_reduces = false;  // loads and stores over a switched link can be reduced and multiplied by it
  ByteRate channel_rate;      // what one core passes over the link for a collective; zero: not known
  ByteRate host_rate;         // PCIe or C2C to the host, per direction, as pinned copies achieve it
  ByteRate nic_rate;          // default scale-out NIC, per direction
  Hertz clock;                // that of the stated peaks; zero when unknown
  Hertz boost;                // highest, of what draws little; zero: not known to be above `clock`
  Hertz peak_clock;           // at which `peak` is stated: that of the catalog's chip; zero: `clock`
  Watts power;                // TDP
  Watts rated_power;          // that of the catalog's chip, with which kernels were timed; zero: `power`
  UsdPerHour price;           // zero when unknown
  Time kernel_floor;          // shortest kernel, from start to end on the device
  std::vector<Fact> facts;    // everything above that the catalog states, with its source

  FlopRate peak_of(DType dtype) const { return peak[static_cast<int>(dtype)]; }
  // Of the peak, what the chip's clock leaves of it. A higher one adds nothing: the units have their rate.
  // Whether what is known of this chip is known of it: its id, another name, or what only its price differs
  // from.
  bool is(std::string_view name) const {
    const auto has = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    return id == name || has(aliases) || has(same_as);
  }
  double peak_share() const {
    return peak_clock.value > clock.value && clock.value > 0 ? clock.value / peak_clock.value : 1;
  }
  double memory_efficiency = 0;  // achieved share of memory_rate by a streaming kernel
};

}  // namespace moebius
