#include "workloads/report/report_stages.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/report/number_text.h"

namespace moebius {
namespace {

struct StageShares {
  double least = 0, most = 0;        // busy, of the run
  double waited = 0, handed_on = 0;  // of a batch's time
};

StageShares shares_of(const ServicePoolFigures& pool, Time span) {
  const PipelineCost::Totals& totals = *pool.pipeline;
  const auto [least, most] = std::minmax_element(totals.busy.begin(), totals.busy.end());
  const double of_run = span.seconds() * pool.instances;
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  return {share(*least, of_run), share(*most, of_run), share(totals.waited, totals.all),
          share(totals.handed_on, totals.all)};
}

}  // namespace

FigureTree stages_tree(const ServicePoolFigures& pool, Time span) {
  const StageShares shares = shares_of(pool, span);
  return {{{"stages", static_cast<std::int64_t>(pool.pipeline->busy.size())},
           {"busy_least", shares.least},
           {"busy_most", shares.most},
           {"waited", shares.waited},
           {"handed_on", shares.handed_on}}};
}

std::string stages_text(const ServicePoolFigures& pool, Time span) {
  const StageShares shares = shares_of(pool, span);
  const double batches = std::max(1.0, pool.pipeline->batches);
  return fmt::format(
      "  {}: {} stages, busy {:.1f} to {:.1f}%; a batch takes {}, of which {:.1f}% before stages that others "
      "are "
      "in and {:.1f}% between stages\n",
      pool.run.name, pool.pipeline->busy.size(), 100 * shares.least, 100 * shares.most,
      seconds_text(pool.pipeline->all / batches), 100 * shares.waited, 100 * shares.handed_on);
}

}  // namespace moebius
