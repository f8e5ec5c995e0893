// The error table for people.
#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "workloads/validation/validation.h"

namespace moebius {

namespace {

using Out = std::back_insert_iterator<std::string>;

std::string figure(double value) {
  return fmt::format("{:.4g}", value);
}

void add_row(Out out, const std::string& name, const ValidatedRow& row) {
  const Expectation& expected = row.expectation;
  fmt::format_to(out, "  {:<30} {:<34} {:>10} {:>10}", name, expected.metric, figure(expected.value),
                 row.ours ? figure(*row.ours) : "-");
  fmt::format_to(out, " {:>8}", row.ours ? fmt::format("{:+.1f}%", 100 * row.difference) : "");
  fmt::format_to(out, " {:>7}  {:<13} {}\n",
                 row.judged() ? fmt::format("±{:.1f}%", 100 * expected.tolerance) : "",
                 to_string(row.verdict), expected.source);
  if (row.verdict == JudgedExpectation::Verdict::kKnownMiss ||
      row.verdict == JudgedExpectation::Verdict::kWorse)
    fmt::format_to(out, "    known miss: {}\n", expected.known_miss);
  if (!row.nearest.empty()) fmt::format_to(out, "    did you mean \"{}\"?\n", row.nearest);
}

void add_case(Out out, const ValidatedCase& given) {
  if (!given.failure.empty()) fmt::format_to(out, "  {:<30} did not run: {}\n", given.name, given.failure);
  for (const ValidatedRow& row : given.rows) add_row(out, given.name, row);
}

void add_summary(Out out, const ValidationSummary& summary) {
  fmt::format_to(out, "  {} figures judged: {} failed, {} known misses", summary.judged, summary.failed,
                 summary.known);
  if (!summary.worst_case.empty())
    fmt::format_to(out, "; error median {:.1f}%, mean {:.1f}%, worst {:.1f}% ({})", 100 * summary.median,
                   100 * summary.mean, 100 * summary.worst, summary.worst_case);
  if (summary.pairs > 0)
    fmt::format_to(out, "; {} of {} pairs in the published order", summary.in_order, summary.pairs);
  fmt::format_to(out, "\n");
}

}  // namespace

std::string to_text(const std::vector<ValidatedCase>& cases) {
  std::string text;
  const Out out = std::back_inserter(text);
  for (const ValidationSummary& summary : summaries(cases)) {
    if (!text.empty()) fmt::format_to(out, "\n");
    fmt::format_to(out, "{}\n  {:<30} {:<34} {:>10} {:>10} {:>8} {:>7}\n", summary.group, "scenario",
                   "metric", "expected", "ours", "error", "of");
    for (const ValidatedCase& given : cases) {
      if (given.group == summary.group) add_case(out, given);
    }
    add_summary(out, summary);
  }
  return text;
}

}  // namespace moebius
