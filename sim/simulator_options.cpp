#include "sim/simulator_options.h"

#include <algorithm>

#include <fmt/format.h>

namespace moebius {
namespace {

const std::vector<std::pair<std::string, NetworkDetail>>& plain_details() {
  static const auto table = [] {
    auto rows = network_details();
    std::erase_if(rows, [](const auto& row) { return row.second == NetworkDetail::kNative; });
    return rows;
  }();
  return table;
}

}  // namespace

CommandOption detail_option(std::optional<NetworkDetail>& detail, Driver driver) {
  const auto& table = driver == Driver::kPlain ? plain_details() : network_details();
  std::string names;
  for (const auto& [name, value] : table)
    names += fmt::format("{}{}{}", names.empty() ? "" : ", ", name,
                         value == SimOptions{}.detail ? " (default)" : "");
  return choice("--detail", detail, table, "how the network is simulated: " + names);
}

CommandOptions simulator_options(std::optional<NetworkDetail>& detail, std::optional<Driver>& driver) {
  return {detail_option(detail, Driver::kSimGrid),
          choice("--driver", driver, drivers(),
                 "who drives the simulator, to the same timeline: plain (default), simgrid (default of "
                 "--detail native)")};
}

}  // namespace moebius
