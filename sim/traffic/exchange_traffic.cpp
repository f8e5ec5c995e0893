#include "sim/traffic/exchange_traffic.h"

#include <algorithm>

#include "workloads/schedule/local_exchange.h"

namespace moebius {

std::vector<Traffic> exchange_traffic(const Op& op, const Route* route, const Group& group,
                                      const LocalExchange& exchange) {
  const int members = std::max<int>(1, static_cast<int>(group.ranks.size()));
  std::vector<Traffic> traffic;
  for (const ExchangeRound& round : exchange_rounds(op, route, members, exchange)) {
    Traffic& step = traffic.emplace_back();
    step.latency = round.latency;
    for (std::size_t i = 0; i < round.bytes.size(); ++i) {
      // Of a message the sender is the only one to copy.
      const auto member = op.kind == OpKind::kSend ? group.my_index : static_cast<std::int32_t>(i);
      step.edges.push_back({member, member, round.bytes[i]});
    }
  }
  return traffic;
}

}  // namespace moebius
