#include "workloads/schedule/local_exchange.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/device_figures.h"
#include "hw/error.h"

namespace moebius {
namespace {

bool is_summed_or_gathered(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter || kind == OpKind::kAllGather;
}

// Rows' bytes that members copy.
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

// Of one operand, latencies left out.
std::vector<ExchangeRound> rounds_of_operand(const Op& op, const Route* route, int members, double bytes,
                                             const LocalExchange& exchange) {
  if (op.kind == OpKind::kSend) return {{0, {bytes}}};
  if (route != nullptr) return {{0, routed_bytes(op, *route, exchange)}};
  const ExchangeRound round{0, std::vector<double>(members, bytes)};
  return std::vector<ExchangeRound>(op.kind == OpKind::kAllReduce ? 2 : 1, round);
}

}  // namespace

double copied_bytes(const Op& op, const LocalExchange& exchange) {
  if (exchange.element_bytes <= 0) return op.payload.value;
  return op.payload.value * exchange.element_bytes / element_bytes(op.dtype);
}

std::vector<ExchangeRound> exchange_rounds(const Op& op, const Route* route, int members,
                                           const LocalExchange& exchange) {
  CHECK(route == nullptr || route->spec().ranks == members,
        fmt::format("a route of other ranks than the group's {}", members));
  if (op.kind == OpKind::kRecv) return {};
  const bool split = is_summed_or_gathered(op.kind);
  const int operands = std::max<int>({1, op.num_inputs, op.num_outputs});
  const double bytes = copied_bytes(op, exchange) / (split ? operands : 1);
  const std::vector<ExchangeRound> one = rounds_of_operand(op, route, members, bytes, exchange);
  const ExchangeRate& rate = exchange.of(exchange_name(op.kind, op.dtype));
  const auto shares = static_cast<double>(&rate == &exchange.wire ? 1 : one.size());
  std::vector<ExchangeRound> rounds;
  for (int operand = 0; operand < operands; ++operand) {
    for (ExchangeRound round : one) {
      round.latency = rate.latency.seconds() / shares;
      const bool empty = operand > 0 && !split;
      for (double& copied : round.bytes) copied = empty ? 0 : copied * (exchange.wire.rate / rate.rate);
      rounds.push_back(std::move(round));
    }
  }
  return rounds;
}

std::string exchange_name(OpKind kind, DType dtype) {
  return fmt::format("{} {} {}", kExchange, to_string(kind), to_string(dtype));
}

}  // namespace moebius
