#include <fmt/format.h>

#include "workloads/report/number_text.h"
#include "workloads/study/mixed/split_search.h"

namespace moebius {
namespace {

std::string tokens_text(double tokens_per_s) {
  return grouped(static_cast<std::int64_t>(tokens_per_s));
}

std::string row(const SplitStudy& study, const SplitRun& run) {
  if (run.tokens_per_s <= 0)
    return fmt::format("  {:<48} {:>12} {:>12}  {}\n", to_text(run.plan, study.pools),
                       tokens_text(run.estimate), "-", run.refusal);
  return fmt::format("  {:<48} {:>12} {:>12} {:>9.2f}%  {}\n", to_text(run.plan, study.pools),
                     tokens_text(run.estimate), tokens_text(run.tokens_per_s),
                     100 * run.tokens_per_s / study.sum_of_parts(), run.layers);
}

}  // namespace

std::string split_text(const SplitStudy& study) {
  std::string text = study.name + "\n\n" + matrix_text(study.matrices);
  text += "\nthe parts, each alone\n";
  for (const SplitPart& part : study.parts)
    text += fmt::format("  {:<12} {:>6} {:<20} {:>12} tokens/s  tp {}{}\n", part.pool, grouped(part.devices),
                        part.chip, tokens_text(part.run.tokens_per_s), part.run.plan.tp,
                        part.run.plan.pp > 1 ? fmt::format(" pp {}", part.run.plan.pp) : "");
  text += fmt::format("  {:<40} {:>12}\n", "sum", tokens_text(study.sum_of_parts()));
  text += fmt::format("\n{} splits estimated by the matrices, {} carried out\n", grouped(study.plans),
                      study.runs.size());
  text += fmt::format("  {:<48} {:>12} {:>12} {:>10}\n", "split", "estimate", "tokens/s", "of parts");
  for (const SplitRun& run : study.runs) text += row(study, run);
  if (study.as_given > 0)
    text += fmt::format("  {:<48} {:>12} {:>12} {:>9.2f}%\n", "as the scenario has it", "",
                        tokens_text(study.as_given), 100 * study.as_given / study.sum_of_parts());
  text += fmt::format("\nbest: {:.2f}% of the sum of the parts; it would be\n", 100 * study.efficiency());
  for (const SplitStop& stop : study.stops)
    text += fmt::format("  {:>7.2f}%  with {}\n", 100 * stop.efficiency, stop.what);
  return text;
}

}  // namespace moebius
