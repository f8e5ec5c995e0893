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

// Of a group's names: columns as wide as the widest, for lines that fit in a terminal.
struct NameWidths {
  std::size_t scenario = std::string_view("scenario").size(), metric = std::string_view("metric").size();
};

NameWidths widths_of(const std::vector<ValidatedCase>& cases, const std::string& group) {
  NameWidths widths;
  for (const ValidatedCase& given : cases) {
    if (given.group != group) continue;
    widths.scenario = std::max(widths.scenario, given.name.size());
    for (const ValidatedRow& row : given.rows)
      widths.metric = std::max(widths.metric, row.expectation.metric.size());
  }
  return widths;
}

void add_row(Out out, const std::string& name, const ValidatedRow& row, const NameWidths& widths) {
  const Expectation& expected = row.expectation;
  fmt::format_to(out, "  {:<{}} {:<{}} {:>10} {:>10}", name, widths.scenario, expected.metric, widths.metric,
                 figure(expected.value), row.ours ? figure(*row.ours) : "-");
  fmt::format_to(out, " {:>8}", row.ours ? fmt::format("{:+.1f}%", 100 * row.difference) : "");
  fmt::format_to(out, " {:>7}  {}\n", row.judged() ? fmt::format("±{:.1f}%", 100 * expected.tolerance) : "",
                 to_string(row.verdict));
}

// Sources stand once below the rows that share them.
void add_case(Out out, const ValidatedCase& given, const NameWidths& widths) {
  if (!given.failure.empty()) fmt::format_to(out, "  {}  did not run: {}\n", given.name, given.failure);
  for (std::size_t i = 0; i < given.rows.size(); ++i) {
    const ValidatedRow& row = given.rows[i];
    add_row(out, given.name, row, widths);
    if (row.verdict == JudgedExpectation::Verdict::kKnownMiss ||
        row.verdict == JudgedExpectation::Verdict::kWorse)
      fmt::format_to(out, "    known miss: {}\n", row.expectation.known_miss);
    if (!row.nearest.empty()) fmt::format_to(out, "    did you mean \"{}\"?\n", row.nearest);
    const bool shared =
        i + 1 < given.rows.size() && given.rows[i + 1].expectation.source == row.expectation.source;
    if (!shared) fmt::format_to(out, "    {}\n", row.expectation.source);
  }
}

std::string summary_text(const ValidationSummary& summary) {
  std::string text = fmt::format("  {} figures judged: {} failed, {} known misses", summary.judged,
                                 summary.failed, summary.known);
  if (!summary.worst_case.empty())
    text += fmt::format("; error median {:.1f}%, mean {:.1f}%, worst {:.1f}% ({})", 100 * summary.median,
                        100 * summary.mean, 100 * summary.worst, summary.worst_case);
  if (summary.pairs > 0)
    text += fmt::format("; {} of {} pairs in the published order", summary.in_order, summary.pairs);
  return text + "\n";
}

}  // namespace

std::string to_text(const std::vector<ValidatedCase>& cases) {
  std::string text;
  const Out out = std::back_inserter(text);
  for (const ValidationSummary& summary : summaries(cases)) {
    if (!text.empty()) fmt::format_to(out, "\n");
    const NameWidths widths = widths_of(cases, summary.group);
    fmt::format_to(out, "{}\n  {:<{}} {:<{}} {:>10} {:>10} {:>8} {:>7}\n", summary.group, "scenario",
                   widths.scenario, "metric", widths.metric, "expected", "ours", "error", "of");
    for (const ValidatedCase& given : cases) {
      if (given.group == summary.group) add_case(out, given, widths);
    }
    text += summary_text(summary);
  }
  return text;
}

}  // namespace moebius
