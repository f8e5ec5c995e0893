#include "workloads/report/report_engine.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/report/number_text.h"

namespace moebius {
namespace {

bool pads(const ServicePlan& plan) {
  return plan.engine.padded || plan.engine.launch == LaunchMode::kGraph;
}

double padding_share(const PoolFigures& run) {
  return run.totals.rows > 0 ? run.totals.padding / run.totals.rows : 0;
}

bool limits_graphs(const ServicePlan& plan) {
  const EngineKeys& engine = plan.engine;
  return engine.launch == LaunchMode::kGraph && (engine.captured_most != 0 || !engine.captured_padding);
}

double eager_share(const PoolFigures& run) {
  const auto iterations = static_cast<double>(run.totals.iterations);
  return iterations > 0 ? static_cast<double>(run.totals.eager) / iterations : 0;
}

}  // namespace

FigureTree with_engine(FigureTree pool, const ServicePoolFigures& figures, const ServicePlan& plan) {
  const PoolFigures& run = figures.run;
  if (pads(plan)) pool.rows.emplace_back("rows_in_vain", padding_share(run));
  if (limits_graphs(plan)) pool.rows.emplace_back("iterations_beyond_graphs", eager_share(run));
  if (plan.host.takes_time())
    pool.parts.emplace_back("host", FigureTree{{{"loop_s", run.host.loop.seconds()},
                                                {"output_s", run.host.output.seconds()},
                                                {"device_waits_s", run.host.waits.seconds()},
                                                {"device_waits", share(run.host.waits, run.totals.busy)}}});
  if (plan.speculation.drafts > 0)
    pool.parts.emplace_back("drafts",
                            FigureTree{{{"guessed", run.drafts.guessed}, {"held", run.drafts.held}}});
  if (plan.engine.swap_space.value > 0)
    pool.parts.emplace_back("swap", FigureTree{{{"sequences", run.swaps.sequences},
                                                {"out_tokens", run.swaps.out_tokens},
                                                {"in_tokens", run.swaps.in_tokens}}});
  return pool;
}

void engine_lines(std::back_insert_iterator<std::string> out, const ServiceFigures& service,
                  const ServicePlan& plan) {
  for (const ServicePoolFigures& pool : service.pools) {
    const PoolFigures& run = pool.run;
    if (pads(plan))
      fmt::format_to(out, "  {}: {:.1f}% of rows computed in vain\n", run.name, 100 * padding_share(run));
    if (run.totals.eager > 0)
      fmt::format_to(out, "  {}: {:.1f}% of iterations decode what no graph was captured for\n", run.name,
                     100 * eager_share(run));
    if (plan.host.takes_time())
      fmt::format_to(
          out, "  {}: the device waits for the host in {:.1f}% of the iterations' time; the loop works {}\n",
          run.name, 100 * share(run.host.waits, run.totals.busy), seconds_text(run.host.loop.seconds()));
    if (run.drafts.guessed > 0)
      fmt::format_to(out, "  {}: {} tokens guessed, {:.1f}% of them right\n", run.name,
                     grouped(run.drafts.guessed),
                     100.0 * static_cast<double>(run.drafts.held) / static_cast<double>(run.drafts.guessed));
    if (run.swaps.sequences > 0)
      fmt::format_to(out, "  {}: {} sequences waited in the host's memory, {} tokens there and {} back\n",
                     run.name, grouped(run.swaps.sequences), grouped(run.swaps.out_tokens),
                     grouped(run.swaps.in_tokens));
  }
  if (service.intake.ns > 0)
    fmt::format_to(out, "  requests became tokens in {} of the workers' time\n",
                   seconds_text(service.intake.seconds()));
}

}  // namespace moebius
