#include "sim/faults/outages.h"

#include <algorithm>

namespace moebius {

void Outages::begin(std::int32_t number, const PartHealth& part, Time now) {
  open_.try_emplace(number, Outage{PathHealth(fabric_, {part}), now});
}

void Outages::end(std::int32_t number) {
  open_.erase(number);
  std::erase_if(noticed_, [&](const auto& entry) { return entry.first[0] == number; });
}

bool Outages::breaks(WireId wire, std::int32_t& number) const {
  const auto last = std::find_if(open_.rbegin(), open_.rend(),
                                 [&](const auto& open) { return open.second.alone.share(wire) <= 0; });
  if (last == open_.rend()) return false;
  number = std::max(number, last->first);
  return true;
}

Time Outages::avoided_from(std::int32_t number, int from, int to, Time now) {
  const auto [known, is_new] = noticed_.try_emplace({number, from, to}, now + failover_.in_collective);
  return std::min(known->second, open_.at(number).since + failover_.mitigate);
}

}  // namespace moebius
