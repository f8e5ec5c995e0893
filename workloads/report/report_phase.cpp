#include "workloads/report/report_phase.h"

#include <cmath>

#include <fmt/format.h>

#include "workloads/report/number_text.h"

namespace moebius {
namespace {

struct NodeFigure {
  const char *key = "", *text = "";
  double tokens = 0;
};

// Devices that the instances leave over do not count.
NodeFigure by_node(const Report& report) {
  const ServicePhase& phase = report.scenario->service.phases.front();
  const double devices = static_cast<double>(phase.instances) * phase.plan.ranks();
  const double nodes = devices / report.scenario->cluster->pools[phase.pool].node.accelerators;
  if (phase.role == PoolRole::kPrefill)
    return {"input_tokens_per_s_per_node", "input", report.serving->input_tokens_per_s / nodes};
  return {"output_tokens_per_s_per_node", "output", report.serving->output_tokens_per_s / nodes};
}

bool one_phase(const Report& report) {
  return report.service && report.scenario->service.does != PoolRole::kBoth;
}

}  // namespace

void add_phase_rows(FigureTree& tree, const Report& report) {
  if (!one_phase(report)) return;
  const NodeFigure figure = by_node(report);
  tree.rows.emplace_back(figure.key, figure.tokens);
}

std::string phase_text(const Report& report) {
  if (!one_phase(report)) return "";
  const NodeFigure figure = by_node(report);
  return fmt::format(
      "  {} tokens/s a node of {} devices: {}\n", figure.text,
      report.scenario->cluster->pools[report.scenario->service.phases.front().pool].node.accelerators,
      grouped(std::llround(figure.tokens)));
}

}  // namespace moebius
