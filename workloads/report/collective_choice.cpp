#include "workloads/report/collective_choice.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/units.h"
#include "workloads/listing/table_text.h"

namespace moebius {
namespace {

std::string name_of(const AlgorithmTime& row) {
  return fmt::format("{}{}{}", to_string(row.algorithm), row.protocol.empty() ? "" : " ", row.protocol);
}

// An automatic choice that no algorithm of ours was made for is the library's own.
std::string name_of(const CollectiveChoice& choice) {
  return choice.chosen.algorithm == Algorithm::kAuto ? "library" : name_of(choice.chosen);
}

std::string candidates_text(const CollectiveChoice& choice) {
  if (!choice.automatic && !choice.by_structure) return "as named, as the chip's library carries it out";
  if (!choice.automatic) return "as named, by wires and their latency alone";
  if (choice.chosen.algorithm == Algorithm::kAuto) return "as the chip's library has it";
  std::vector<AlgorithmTime> sorted = choice.candidates;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const AlgorithmTime& a, const AlgorithmTime& b) { return a.seconds < b.seconds; });
  std::string text;
  for (const AlgorithmTime& row : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(row), seconds_text(row.seconds));
  return text;
}

}  // namespace

std::string algorithm_text(const CollectiveChoice& choice) {
  std::string text = name_of(choice);
  const AlgorithmTime* fastest = &choice.chosen;
  for (const AlgorithmTime& row : choice.candidates)
    if (row.seconds < fastest->seconds) fastest = &row;
  constexpr double kWorthSaying = 0.95;
  if (fastest->seconds < kWorthSaying * choice.chosen.seconds)
    text += fmt::format(", as the library's tuner chooses; {} would take {} on an idle network",
                        name_of(*fastest), seconds_text(fastest->seconds));
  if (choice.with_library)
    text += choice.automatic
                ? ", by wires and their latency after the library's launch: its steps here are not known"
                : ", by wires and their latency alone";
  return text;
}

std::string choices_text(const std::vector<CollectiveChoice>& choices) {
  if (choices.empty()) return {};
  TextTable rows;
  for (const CollectiveChoice& row : choices)
    rows.push_back({std::string(to_string(row.kind)), std::string(to_string(row.group)),
                    std::to_string(row.ranks), std::to_string(row.nodes), to_text(Bytes{row.bytes}),
                    name_of(row), seconds_text(row.chosen.seconds), candidates_text(row)});
  return "collectives, each alone on an idle network\n" + fitted({{.head = "operation"},
                                                                  {.head = "group"},
                                                                  {.head = "ranks", .right = true},
                                                                  {.head = "nodes", .right = true},
                                                                  {.head = "bytes", .right = true},
                                                                  {.head = "algorithm"},
                                                                  {.head = "time", .right = true},
                                                                  {.head = "candidates", .folds = true}},
                                                                 rows);
}

std::string wires_text(const std::vector<WireUse>& wires) {
  if (wires.empty()) return {};
  std::string text = fmt::format("by which links\n  {:<16} {:>6} {:>12} {:>16} {:>14}\n", "link", "wires",
                                 "bytes", "on the busiest", "busy for");
  for (const WireUse& row : wires) {
    text += fmt::format("  {:<16} {:>6} {:>12} {:>16} {:>14}", row.kind, row.wires, to_text(Bytes{row.bytes}),
                        to_text(Bytes{row.busiest_bytes}), seconds_text(row.busiest_seconds));
    if (row.posting_seconds > 0)
      text +=
          fmt::format("  and {} to post {:.0f} messages", seconds_text(row.posting_seconds), row.messages);
    text += "\n";
  }
  return text;
}

}  // namespace moebius
