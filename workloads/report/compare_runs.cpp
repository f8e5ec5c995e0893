#include "workloads/report/compare_runs.h"

#include <fmt/format.h>

#include <filesystem>

#include "workloads/report/figure_differences.h"
#include "workloads/report/loss_curves.h"
#include "workloads/report/network_comparison.h"
#include "workloads/report/run_directory.h"
#include "workloads/schedule/compare.h"
#include "workloads/schedule/critical_path.h"

namespace moebius {
namespace {

bool kept_ops(const MappedTimeline& run) {
  const std::string detail = run.fact("timeline_detail");
  return detail.empty() || detail == "ops";
}

// Nothing to join: a course of a cluster, a replay of a cache, or a timeline that kept something else.
bool has_no_ops(const MappedTimeline& run) {
  return run.num_spans() == 0 || !kept_ops(run);
}

std::string why_no_ops(const MappedTimeline& run, const char* name) {
  if (!has_no_ops(run)) return "";
  return kept_ops(run) ? fmt::format(", {} has none", name)
                       : fmt::format(", {} kept {} (/timeline/detail)", name, run.fact("timeline_detail"));
}

std::string compare_without_ops(const MappedTimeline& a, const MappedTimeline& b, const std::string& run_a,
                                const std::string& run_b) {
  return fmt::format("ops: not joined{}{}\n\n{}", why_no_ops(a, "a"), why_no_ops(b, "b"),
                     compare_figures(run_a, run_b));
}

// Op by op and, where both did the same, along the critical paths.
std::string compare_ops(const MappedTimeline& a, const MappedTimeline& b, const std::string& run_a,
                        const std::string& run_b) {
  const Comparison comparison = compare(a, b);
  std::string text = to_text(comparison, run_a, run_b);
  if (comparison.same_structure()) text.append("\n").append(to_text(compare_paths(a, b)));
  return text;
}

std::string faults_of(const MappedTimeline& run, const char* name) {
  std::string text;
  for (const auto& [fact, value] : run.tables().facts)
    if (fact == "fault") text += fmt::format("  in {}: {}\n", name, value);
  return text;
}

// Of a timeline alone nobody knows.
void require_own_report(const std::string& run) {
  const std::filesystem::path timeline = timeline_path(run);
  const std::string file = (timeline.parent_path() / "report.json").string();
  std::error_code none;
  if (std::filesystem::exists(file, none))
    require_one_run(file, load_report(file).root, SpanColumns(timeline.string()));
}

}  // namespace

std::string compare_runs(const std::string& run_a, const std::string& run_b) {
  for (const std::string& run : {run_a, run_b}) require_own_report(run);
  const MappedTimeline a(timeline_path(run_a)), b(timeline_path(run_b));
  const LossCurve loss_a = loss_curve(run_a), loss_b = loss_curve(run_b);
  const std::optional<LossComparison> losses = compare_losses(loss_a, loss_b);
  const std::string names = fmt::format("a: {}\nb: {}\n\n", run_a, run_b);
  std::string networks = compare_networks(run_a, run_b) + faults_of(a, "a") + faults_of(b, "b");
  if (!networks.empty()) networks += "\n";
  if (!losses && (has_no_ops(a) || has_no_ops(b)))
    return names + networks + compare_without_ops(a, b, run_a, run_b);
  if (!losses && !networks.empty()) return names + networks + compare_ops(a, b, run_a, run_b);
  if (!losses) return compare_ops(a, b, run_a, run_b);
  const std::string text = fmt::format("{}{}\n", names, to_text(*losses, loss_a, loss_b));
  if (!has_no_ops(a) && !has_no_ops(b)) return text + compare_ops(a, b, run_a, run_b);
  return fmt::format("{}ops: not joined{}{}\n", text, why_no_ops(a, "a"), why_no_ops(b, "b"));
}

}  // namespace moebius
