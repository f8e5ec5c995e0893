#include "workloads/report/report_network.h"

#include <fmt/format.h>

#include "hw/units.h"

namespace moebius {
namespace {

std::string routing_line(const NetworkUse& use) {
  std::string text = use.routing;
  if (use.queue_pairs > 1) text += fmt::format(", {} queue pairs a message", use.queue_pairs);
  if (use.most_flows > 0) text += fmt::format(", up to {} single flows at a time", use.most_flows);
  if (use.damaged > 0)
    text += fmt::format(", {} {} broken or slowed", use.damaged, use.damaged == 1 ? "part" : "parts");
  return text;
}

std::string carried_text(const TierUse& tier) {
  return tier.counts_messages ? fmt::format("{:.6g} msgs", tier.bytes) : to_text(Bytes{tier.bytes});
}

}  // namespace

std::string network_text(const NetworkUse& use, double seconds) {
  std::string text;
  if (!use.routing.empty()) text += fmt::format("  {:<28} {}\n", "routing", routing_line(use));
  if (use.tiers.empty()) return text;
  text += fmt::format("  {:<16} {:>8} {:>12} {:>10} {:>10} {:>10}\n", "tier", "ports", "carried", "busy",
                      "busiest", "max/mean");
  for (const TierUse& tier : use.tiers) {
    text += fmt::format("  {:<16} {:>8} {:>12} {:>9.1f}% {:>9.1f}% {:>10.2f}\n", tier.tier, tier.ports,
                        carried_text(tier), 100 * tier.busy_share(seconds),
                        100 * tier.most_busy_share(seconds), tier.imbalance());
  }
  if (const TierUse* narrowest = use.narrowest())
    text += fmt::format(
        "  {:<28} {:.1f}% of what the narrowest tier ({}, {} ports in use) can carry; port imbalance "
        "{:.2f}\n",
        "share of bisection", 100 * narrowest->busy_share(seconds), narrowest->tier, narrowest->ports,
        use.port_imbalance());
  const TierUse* binding = use.binding();
  if (use.beyond_the_run(seconds)) {
    text += "  (transfers do not share wires at this detail, so that ports can be busy for more than 100%)\n";
  } else if (binding != nullptr) {
    text += fmt::format("  {:<28} {}: the busiest is in use {:.1f}% of the time\n", "binding", binding->tier,
                        100 * binding->most_busy_share(seconds));
  }
  if (const auto* slowest = use.slowest_stage()) {
    text += fmt::format("  {:<28} {} of steps alone, bound by the {}\n", "through host memory",
                        to_text(time_from_seconds(use.forwarding_seconds)), slowest->tier);
    for (const auto& stage : use.forwarding)
      text += fmt::format("    {:<26} {:>9.1f}% in use\n", stage.tier,
                          100 * stage.seconds / use.forwarding_seconds);
  }
  if (use.folded) text += "  (ports of the ranks that are simulated, and what those stand for)\n";
  return text;
}

}  // namespace moebius
