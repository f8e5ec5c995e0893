#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "workloads/schedule/compare.h"

namespace moebius {

namespace {

// "+12.3%"; beyond ten times, "x 25.1".
std::string change(double relative) {
  return std::abs(relative) < 10 ? fmt::format("{:+.1f}%", 100 * relative)
                                 : fmt::format("x {:.1f}", 1 + relative);
}

std::string share(double relative) {
  return relative < 10 ? fmt::format("{:.1f}%", 100 * relative) : fmt::format("x {:.1f}", 1 + relative);
}

std::string verdict(const Comparison& c) {
  if (c.same_structure()) {
    return fmt::format("the same: {} ops joined; kinds, shapes, payloads and the order on every lane agree",
                       c.joined);
  }
  std::string text = fmt::format("DIFFERENT: {} ops joined", c.joined);
  const auto add = [&](bool when, const std::string& what) {
    if (when) text += ", " + what;
  };
  add(!c.same_schedule, "another schedule");
  add(c.only_a > 0, fmt::format("{} only in a", c.only_a));
  add(c.only_b > 0, fmt::format("{} only in b", c.only_b));
  add(c.different_ops > 0, fmt::format("{} of other work", c.different_ops));
  add(c.order_violations > 0, fmt::format("{} out of order", c.order_violations));
  return text;
}

}  // namespace

std::string to_text(const Comparison& c, const std::string& name_a, const std::string& name_b) {
  std::string text;
  const auto out = std::back_inserter(text);
  const int steps_a = c.by_step() ? c.steps_a : 1, steps_b = c.by_step() ? c.steps_b : 1;
  const double time_a = c.makespan_a.seconds() / steps_a, time_b = c.makespan_b.seconds() / steps_b;
  const auto steps_text = [&](int steps, double seconds) {
    return c.by_step()
               ? fmt::format(", {} {} of {}", steps, steps == 1 ? "step" : "steps", seconds_text(seconds))
               : std::string();
  };
  const bool against_a = c.base == ErrorBase::kA;
  const auto change_text = [&](bool shown, double time, double base) {
    return shown && base > 0 ? fmt::format(" ({}{})", change(time / base - 1), c.by_step() ? " a step" : "")
                             : std::string();
  };
  fmt::format_to(out, "a: {}: {}{}{}\n", name_a, to_text(c.makespan_a), steps_text(steps_a, time_a),
                 change_text(!against_a, time_a, time_b));
  fmt::format_to(out, "b: {}: {}{}{}\n", name_b, to_text(c.makespan_b), steps_text(steps_b, time_b),
                 change_text(against_a, time_b, time_a));
  fmt::format_to(out, "structure: {}\n", verdict(c));
  for (const std::string& sentence : c.first_differences) fmt::format_to(out, "  {}\n", sentence);
  if (c.kinds.empty()) return text;
  fmt::format_to(out, "\nTime of {} by kind (communication without waiting for peers)\n",
                 against_a ? "b against a" : "a against b");
  fmt::format_to(out, "{:<20} {:>8} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}\n", "kind", "ops", "a", "b", "bias",
                 "median", "p90", "worst");
  for (const KindError& k : c.kinds) {
    fmt::format_to(out, "{:<20} {:>8} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}\n", to_string(k.kind), k.count,
                   seconds_text(k.seconds_a), seconds_text(k.seconds_b), change(k.bias), share(k.median),
                   share(k.p90), share(k.worst));
  }
  return text;
}

}  // namespace moebius
