#include "workloads/report/figure_differences.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "workloads/report/number_text.h"
#include "workloads/report/run_directory.h"

namespace moebius {
namespace {

// Of the run that computed the figures, of its input, or said a second time.
constexpr std::array kNoFigures = {"seed",   "expect", "provenance",    "uncertainty", "explain",
                                   "wall_s", "cpu_s",  "max_rss_bytes", "measured"};

// What runs are judged by, of all kinds, in the order in which it is told.
constexpr std::array kHeadline = {"rl.step_time_s",
                                  "rl.tokens_per_s",
                                  "step_time_s",
                                  "tokens_per_s",
                                  "mfu",
                                  "collective.time_s",
                                  "collective.busbw_bytes_per_s",
                                  "run_time_s",
                                  "ttft_s.mean",
                                  "ttft_s.p50",
                                  "ttft_s.p99",
                                  "tpot_s.mean",
                                  "tpot_s.p50",
                                  "tpot_s.p99",
                                  "e2e_s.mean",
                                  "output_tokens_per_s",
                                  "input_tokens_per_s",
                                  "goodput_rps",
                                  "slo_attainment",
                                  "requests.completed",
                                  "requests.rejected",
                                  "kv.hit_share",
                                  "cost.usd_per_million_tokens",
                                  "cost.joules_per_output_token",
                                  "cluster.effective_time.mean",
                                  "cluster.allocation.mean",
                                  "cluster.utilisation.mean",
                                  "cluster.done.mean",
                                  "cluster.interruptions.mean",
                                  "cluster.tokens.mean",
                                  "cluster.cost_usd.mean",
                                  "cluster.usd_per_million_tokens"};
constexpr double kHardly = 1e-6;  // in whatever unit

using FiguresByPath = std::map<std::string, double>;

void collect(const Value& value, const std::string& path, FiguresByPath& figures) {
  if (value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kNumber) figures[path] = value.number;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const std::string step = value.kind == Value::Kind::kObject ? value.keys[i] : std::to_string(i);
    if (path.empty() && std::find(kNoFigures.begin(), kNoFigures.end(), step) != kNoFigures.end()) continue;
    collect(value.items[i], path.empty() ? step : path + "." + step, figures);
  }
}

// 0 to 2: twice as much weighs what half as much does.
double weight(const FigureDifference& row) {
  return std::abs(row.b - row.a) / std::max(std::abs(row.a), std::abs(row.b));
}

// One sample of something over time, or a figure that is next to nothing in both runs.
bool says_little(const FigureDifference& row) {
  if (row.path.starts_with("series.") || row.path.find(".series.") != std::string::npos) return true;
  return std::max(std::abs(row.a), std::abs(row.b)) < kHardly;
}

// Figures of the headline have places, the others follow them, and what says little comes last.
std::size_t place(const FigureDifference& row) {
  const auto found = std::find(kHeadline.begin(), kHeadline.end(), row.path);
  const auto at = static_cast<std::size_t>(found - kHeadline.begin());
  return found == kHeadline.end() && says_little(row) ? at + 1 : at;
}

Document report_of(const std::string& run) {
  const std::filesystem::path timeline = timeline_path(run);
  return load_report((timeline.parent_path() / "report.json").string());
}

}  // namespace

FigureDifferences figure_differences(const Value& report_a, const Value& report_b) {
  FiguresByPath a, b;
  collect(report_a, "", a);
  collect(report_b, "", b);
  FigureDifferences result;
  for (const auto& [path, value] : a) {
    const auto in_b = b.find(path);
    if (in_b == b.end()) {
      ++result.only_a;
    } else if (in_b->second == value) {
      ++result.same;
    } else {
      result.rows.push_back({path, value, in_b->second});
    }
  }
  result.only_b = b.size() - result.same - result.rows.size();
  std::stable_sort(result.rows.begin(), result.rows.end(), [](const auto& x, const auto& y) {
    return std::pair(place(x), -weight(x)) < std::pair(place(y), -weight(y));
  });
  return result;
}

std::string difference_text(const FigureDifference& row) {
  if (row.a == 0) return "-";
  const double ratio = row.b / row.a;
  return std::abs(ratio) < 11 ? fmt::format("{:+.3g}%", 100 * (ratio - 1)) : fmt::format("x {:.1f}", ratio);
}

std::string compare_figures(const std::string& run_a, const std::string& run_b) {
  const FigureDifferences differences = figure_differences(report_of(run_a).root, report_of(run_b).root);
  std::string text;
  const auto out = std::back_inserter(text);
  const std::size_t number = differences.rows.size(), told = std::min(number, kFiguresTold);
  fmt::format_to(out, "figures: {} of {} differ", number, number + differences.same);
  if (number > 0)
    fmt::format_to(out, ", those of the headline first, then by relative difference, samples over time last");
  fmt::format_to(out, "\n");
  std::size_t width = 6;
  for (std::size_t i = 0; i < told; ++i) width = std::max(width, differences.rows[i].path.size());
  if (told > 0) fmt::format_to(out, "  {:<{}} {:>12} {:>12} {:>11}\n", "figure", width, "a", "b", "b to a");
  for (std::size_t i = 0; i < told; ++i) {
    const FigureDifference& row = differences.rows[i];
    fmt::format_to(out, "  {:<{}} {:>12} {:>12} {:>11}\n", row.path, width, figure_text(row.a),
                   figure_text(row.b), difference_text(row));
  }
  if (told < number) fmt::format_to(out, "  and {} more\n", number - told);
  if (differences.only_a + differences.only_b > 0)
    fmt::format_to(out, "  {} only in a, {} only in b\n", differences.only_a, differences.only_b);
  return text;
}

bool kind_has_ops(std::string_view scenario_kind) {
  return scenario_kind != "cluster" && scenario_kind != "kv-replay";
}

}  // namespace moebius
