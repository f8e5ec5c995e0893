// The errors of measured servers for people.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "workloads/validation/servers/server_errors.h"

namespace moebius {
namespace {

using Out = std::back_insert_iterator<std::string>;

void add_errors(Out out, const ErrorSummary& errors) {
  fmt::format_to(out, "   {:>7.1f}% {:>7.1f}% {:>+7.1f}%", 100 * errors.median, 100 * errors.p90,
                 100 * errors.bias);
}

void add_groups(Out out, const ServerSummary& summary) {
  fmt::format_to(out, "{:<11}{:<40}{:>5}   {:>26}   {:>26}\n", "", "", "", "first token (TTFT)",
                 "per token (TPOT)");
  fmt::format_to(out, "{:<11}{:<40}{:>5}", "by", "", "rows");
  for (int i = 0; i < 2; ++i) fmt::format_to(out, "   {:>8} {:>8} {:>8}", "median", "p90", "bias");
  fmt::format_to(out, "\n");
  for (const ServerGroup& group : summary.groups) {
    fmt::format_to(out, "{:<11}{:<40}{:>5}", group.by, group.name, group.ttft.rows);
    add_errors(out, group.ttft);
    add_errors(out, group.tpot);
    fmt::format_to(out, "\n");
  }
}

void add_left_out(Out out, const ServerSummary& summary) {
  std::vector<std::pair<int, std::string>> reasons;
  for (const auto& [reason, rows] : summary.left_out) reasons.emplace_back(-rows, reason);
  std::sort(reasons.begin(), reasons.end());
  for (const auto& [rows, reason] : reasons) fmt::format_to(out, "  {:>5}  {}\n", -rows, reason);
}

}  // namespace

std::string servers_text(const std::vector<ServerResult>& results) {
  const ServerSummary summary = summary_of(results);
  std::string text;
  const Out out = std::back_inserter(text);
  fmt::format_to(out,
                 "{} rows of measured servers, {} scored; {} more are kept for the fit of host costs\n\n",
                 summary.rows, summary.scored, summary.for_fit);
  add_groups(out, summary);
  fmt::format_to(
      out, "\nrank correlation of throughput over configurations: {}\n",
      summary.ranks.empty() ? "- (of three rows and more)" : fmt::format("{:.3f}", summary.rank_correlation));
  for (const RankCorrelation& rank : summary.ranks)
    fmt::format_to(out, "  {:<10} {:<40}{:>5}  {:.3f}\n", rank.system, rank.model, rank.rows, rank.spearman);
  if (!summary.left_out.empty()) fmt::format_to(out, "\nrows that are not scored, and why\n");
  add_left_out(out, summary);
  return text;
}

}  // namespace moebius
