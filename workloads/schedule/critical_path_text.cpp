#include <iterator>

#include <fmt/format.h>

#include "workloads/schedule/critical_path.h"

namespace moebius {
namespace {

std::string name_of(const PathOp& op) {
  std::string text = fmt::format("{} {}", to_string(op.op.kind), to_string(op.op.role));
  if (op.op.layer >= 0) text += fmt::format(" layer {}", op.op.layer);
  return text + fmt::format(", {}", op.fragment);
}

// "m=32 n=64 k=64", of communication what is sent.
std::string size_of(const OpRow& op) {
  if (is_communication(op.kind)) return payload_text(op);
  std::string text = fmt::format("m={} n={}", op.shape.m, op.shape.n);
  if (op.shape.k > 0) text += fmt::format(" k={}", op.shape.k);
  return text;
}

}  // namespace

std::string to_text(const PathDifference& d) {
  std::string text = "Critical path by kind (share of the makespan)\n";
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{:<20} {:>10} {:>7} {:>10} {:>7}\n", "kind", "a", "", "b", "");
  const auto row = [&](std::string_view name, double a, double b) {
    fmt::format_to(out, "{:<20} {:>10} {:>6.1f}% {:>10} {:>6.1f}%\n", name, seconds_text(a),
                   100 * share(a, d.makespan_a), seconds_text(b), 100 * share(b, d.makespan_b));
  };
  for (const PathShare& kind : d.kinds) row(to_string(kind.kind), kind.a, kind.b);
  row("(gaps)", d.gaps_a, d.gaps_b);
  const double difference = d.makespan_b - d.makespan_a;
  fmt::format_to(
      out, "\nOps that explain most of the difference ({}): time on b's critical path less that on a's\n",
      seconds_text(difference));
  fmt::format_to(out, "{:>10} {:>7} {:>10} {:>6} {:>10} {:>6}  {}\n", "b - a", "", "a", "times", "b", "times",
                 "op");
  const auto told = [&](double change) {
    return fmt::format("{:>10} {:>6.1f}%", seconds_text(change), 100 * share(change, d.makespan_a));
  };
  for (const PathOp& op : d.ops)
    fmt::format_to(out, "{} {:>10} {:>6} {:>10} {:>6}  {} ({})\n", told(op.b - op.a), seconds_text(op.a),
                   op.times_a, seconds_text(op.b), op.times_b, name_of(op), size_of(op.op));
  fmt::format_to(out, "{}  all other ops\n{}  gaps\n", told(d.rest), told(d.gaps_b - d.gaps_a));
  return text;
}

}  // namespace moebius
