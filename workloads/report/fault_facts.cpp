#include "workloads/report/fault_facts.h"

#include <fmt/format.h>

namespace moebius {
namespace {

std::string time_text(Time time) {
  return time == kForever ? "-" : to_text(time);
}

std::string line_of(const FaultFacts& fault) {
  const std::string what =
      fault.left > 0 ? fmt::format("{} ({:.0f}% left)", fault.kind, 100 * fault.left) : fault.kind;
  std::string text = fmt::format("  {:<26} {:<20} {:>10} {:>10} {:>10} {:>10} {:>10}\n", what, fault.place,
                                 time_text(fault.down), time_text(fault.failover), time_text(fault.detected),
                                 time_text(fault.mitigated), time_text(fault.up));
  if (fault.stalled_bytes > 0)
    text += fmt::format(
        "  {:<26} {} stood still, {} moved to other ways{}{}\n", "", to_text(Bytes{fault.stalled_bytes}),
        to_text(Bytes{fault.moved_bytes}),
        fault.detour_bytes > 0 ? fmt::format(", {} of it over other NICs", to_text(Bytes{fault.detour_bytes}))
                               : "",
        fault.failover < fault.last_failover ? fmt::format(", the last at {}", to_text(fault.last_failover))
                                             : "");
  return text;
}

}  // namespace

std::string one_line(const FaultFacts& fault) {
  std::string text = fmt::format("{} of {}: down {}", fault.kind, fault.place, to_text(fault.down));
  const auto add = [&](const char* what, Time time) {
    if (time != kForever) text += fmt::format(", {} {}", what, to_text(time));
  };
  add("failover", fault.failover);
  add("detected", fault.detected);
  add("mitigated", fault.mitigated);
  add("up", fault.up);
  return text;
}

std::string faults_text(const std::vector<FaultFacts>& faults) {
  if (faults.empty()) return "";
  std::string text = fmt::format("\n{:<49} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "faults", "down",
                                 "failover", "detected", "mitigated", "up");
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < faults.size() && i < kMost; ++i) text += line_of(faults[i]);
  if (faults.size() > kMost) text += fmt::format("  and {} more: see report.json\n", faults.size() - kMost);
  return text;
}

}  // namespace moebius
