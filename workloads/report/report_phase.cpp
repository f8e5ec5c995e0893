#include "workloads/report/report_phase.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/report/number_text.h"

namespace moebius {
namespace {

struct NodeFigure {
  const char *key = "", *by_device = "", *text = "";
  double tokens = 0;  // of a node
  int devices = 1;
};

// Devices that the instances leave over do not count: a node of which fewer serve is as many.
NodeFigure by_node(const Report& report) {
  const ServicePhase& phase = report.scenario->service.phases.front();
  const int serving = phase.instances * phase.plan.devices();
  const int of_node = std::min(serving, report.scenario->cluster->pools[phase.pool].node.accelerators);
  const double nodes = static_cast<double>(serving) / of_node;
  if (phase.role == PoolRole::kPrefill)
    return {"input_tokens_per_s_per_node", "input_tokens_per_s_per_device", "input",
            report.serving->input_tokens_per_s / nodes, of_node};
  return {"output_tokens_per_s_per_node", "output_tokens_per_s_per_device", "output",
          report.serving->output_tokens_per_s / nodes, of_node};
}

bool one_phase(const Report& report) {
  return report.service && report.scenario->service.does != PoolRole::kBoth;
}

}  // namespace

void add_phase_rows(FigureTree& tree, const Report& report) {
  if (!one_phase(report)) return;
  const NodeFigure figure = by_node(report);
  tree.rows.emplace_back(figure.key, figure.tokens);
  tree.rows.emplace_back(figure.by_device, figure.tokens / figure.devices);
}

std::string phase_text(const Report& report) {
  if (!one_phase(report)) return "";
  const NodeFigure figure = by_node(report);
  return fmt::format("  {} tokens/s a node of {} devices that serve: {}\n", figure.text, figure.devices,
                     rate_text(figure.tokens));
}

}  // namespace moebius
