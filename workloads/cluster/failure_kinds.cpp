#include "workloads/cluster/failure_kinds.h"

#include <array>

namespace moebius {

namespace {

using namespace literals;

constexpr double kHoursOfDay = 24;

// Llama 3 405B on 16,384 H100 over 54 days: 419 unexpected interruptions by cause (Dubey and others 2024,
// arXiv 2407.21783, table 5). 2,048 nodes: 0.003789 a node and day.
struct Cause {
  const char* name;
  int count;
  FailureEffect effect;
  int nodes;
  bool by_heat;
};
constexpr std::array kLlama{
    Cause{"GPU", 148 + 19 + 17 + 6, FailureEffect::kCrash, 1,
          true},  // faulty, SRAM, system processor, thermal
    Cause{"HBM", 72, FailureEffect::kCrash, 1, true},
    Cause{"software", 54 + 2, FailureEffect::kCrash, 0, false},
    Cause{"switch or cable", 35, FailureEffect::kHang, 0, false},
    Cause{"host", 32 + 3 + 2 + 2 + 2 + 2, FailureEffect::kCrash, 1,
          false},  // maintenance, power, chassis, boards
    Cause{"NIC", 7, FailureEffect::kHang, 1, false},
    Cause{"collective timeout", 7, FailureEffect::kHang, 0, false},
    Cause{"silent corruption", 6, FailureEffect::kCrash, 1,
          false},  // counted when it was noticed; since when is not told
    Cause{"SSD", 3, FailureEffect::kCrash, 1, false},
};
constexpr double kLlamaNodeDays = 2048.0 * 54;

// Repairs are not published: half a day for hardware stands for an exchange by hand.
std::vector<FailureKind> llama_kinds() {
  std::vector<FailureKind> kinds;
  for (const Cause& cause : kLlama) {
    FailureKind kind;
    kind.name = cause.name;
    kind.per_hour = cause.count / kLlamaNodeDays / kHoursOfDay;
    kind.effect = cause.effect;
    kind.nodes = cause.nodes;
    kind.by_heat = cause.by_heat;
    if (cause.nodes > 0) kind.repair = {time_from_seconds(12 * 3600.0), 1};
    kinds.push_back(kind);
  }
  return kinds;
}

FailureMix scaled(std::string_view name, std::string_view help, double per_node_day) {
  FailureMix mix{name, help, per_node_day, llama_kinds()};
  const double now = node_rate(mix.kinds, 8) * kHoursOfDay;
  for (FailureKind& kind : mix.kinds) kind.per_hour *= per_node_day / now;
  return mix;
}

}  // namespace

std::span<const FailureMix> failure_mixes() {
  static const std::array all{
      scaled("llama3-2024", "Llama 3 405B on 16,384 H100, 54 days (arXiv 2407.21783)", 419 / kLlamaNodeDays),
      scaled("rsc-1-2024", "Meta's RSC-1, 16,000 A100 (arXiv 2410.21680); causes as llama3-2024", 0.0065),
      scaled("rsc-2-2024", "Meta's RSC-2, 8,000 A100 (arXiv 2410.21680); causes as llama3-2024", 0.00234),
  };
  return all;
}

double node_rate(std::span<const FailureKind> kinds, int devices) {
  double rate = 0;
  for (const FailureKind& kind : kinds) {
    if (kind.unit == FailureUnit::kNode) rate += kind.per_hour;
    if (kind.unit == FailureUnit::kDevice) rate += devices * kind.per_hour;
  }
  return rate;
}

}  // namespace moebius
