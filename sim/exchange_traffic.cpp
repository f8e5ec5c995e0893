#include "sim/exchange_traffic.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

Traffic round_of(const std::vector<double>& bytes, const LocalExchange& exchange) {
  Traffic round;
  round.latency = exchange.latency.seconds();
  for (std::size_t member = 0; member < bytes.size(); ++member) {
    const auto at = static_cast<std::int32_t>(member);
    round.edges.push_back({at, at, bytes[member]});
  }
  return round;
}

bool is_summed_or_gathered(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter || kind == OpKind::kAllGather;
}

// Rows that members copy: `come` to them, `go` from them.
std::vector<double> routed_bytes(const Op& op, const Route& route, const LocalExchange& exchange) {
  const int members = route.spec().ranks;
  const double row = copied_bytes(op, exchange);
  std::vector<double> come(members, 0), go(members, 0);
  for (int from = 0; from < members; ++from) {
    for (int to = 0; to < members; ++to) {
      const double bytes = row * route.tokens_between(from, to);
      go[from] += bytes;
      come[to] += bytes;
    }
  }
  if (op.kind == OpKind::kCombine) return go;  // the way back; results stand as they are sent
  for (int member = 0; member < members && exchange.packs; ++member) come[member] += go[member];
  return come;
}

}  // namespace

double copied_bytes(const Op& op, const LocalExchange& exchange) {
  if (exchange.element_bytes <= 0) return op.payload.value;
  return op.payload.value * exchange.element_bytes / element_bytes(op.dtype);
}

std::vector<Traffic> exchange_traffic(const Op& op, const Route* route, const Group& group,
                                      const LocalExchange& exchange) {
  const std::size_t members = std::max<std::size_t>(1, group.ranks.size());
  if (op.kind == OpKind::kSend) {
    Traffic message = round_of({copied_bytes(op, exchange)}, exchange);
    message.edges.front().from = message.edges.front().to = group.my_index;
    return {message};
  }
  if (route != nullptr) {
    CHECK(route->spec().ranks == static_cast<int>(members),
          fmt::format("route of {} ranks, group of {}", route->spec().ranks, members));
    return {round_of(routed_bytes(op, *route, exchange), exchange)};
  }
  const int operands = is_summed_or_gathered(op.kind) ? std::max<int>(1, op.num_inputs) : 1;
  const int rounds = operands * (op.kind == OpKind::kAllReduce ? 2 : 1);
  const std::vector<double> each(members, copied_bytes(op, exchange) / operands);
  return std::vector<Traffic>(rounds, round_of(each, exchange));
}

}  // namespace moebius
