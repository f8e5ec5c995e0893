#include "workloads/crosscheck/compare_runs.h"

#include "workloads/report/run_directory.h"
#include "workloads/schedule/compare.h"
#include "workloads/schedule/critical_path.h"

namespace moebius {

std::string compare_runs(const std::string& run_a, const std::string& run_b) {
  const MappedTimeline a(timeline_path(run_a)), b(timeline_path(run_b));
  const Comparison comparison = compare(a, b);
  const std::string text = to_text(comparison, run_a, run_b);
  return comparison.same_structure() ? text + "\n" + to_text(compare_paths(a, b)) : text;
}

}  // namespace moebius
