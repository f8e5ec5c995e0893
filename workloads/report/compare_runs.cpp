#include "workloads/report/compare_runs.h"

#include <fmt/format.h>

#include "workloads/report/loss_curves.h"
#include "workloads/report/run_directory.h"
#include "workloads/schedule/compare.h"

namespace moebius {
namespace {

bool kept_ops(const MappedTimeline& run) {
  const std::string detail = run.fact("timeline_detail");
  return detail.empty() || detail == "ops";
}

}  // namespace

std::string compare_runs(const std::string& run_a, const std::string& run_b) {
  const MappedTimeline a(timeline_path(run_a)), b(timeline_path(run_b));
  const LossCurve loss_a = loss_curve(run_a), loss_b = loss_curve(run_b);
  const std::optional<LossComparison> losses = compare_losses(loss_a, loss_b);
  if (!losses) return to_text(compare(a, b), run_a, run_b);
  const std::string text =
      fmt::format("a: {}\nb: {}\n\n{}\n", run_a, run_b, to_text(*losses, loss_a, loss_b));
  if (kept_ops(a) && kept_ops(b)) return text + to_text(compare(a, b), run_a, run_b);
  return text + "ops: not joined, the timelines did not keep them (/timeline/detail)\n";
}

}  // namespace moebius
