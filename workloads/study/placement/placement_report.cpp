// What `moebius place` prints.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/listing/table_text.h"
#include "workloads/report/number_text.h"
#include "workloads/report/wrapped_text.h"
#include "workloads/study/placement/placement_study.h"
#include "workloads/training/rank_placement.h"

namespace moebius {
namespace {

double quantile(std::vector<double> sorted, double share) {
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

template <class Of>
std::string quantiles_text(const char* name, const std::vector<FragmentedGain>& gains, Of of) {
  std::vector<double> values;
  for (const FragmentedGain& gain : gains) values.push_back(of(gain));
  if (values.empty()) return {};
  return fmt::format("  {:<34} {:>5} {:>7.3f} {:>7.3f} {:>7.3f} {:>7.3f} {:>7.3f}\n", name, values.size(),
                     quantile(values, 0), quantile(values, 0.25), quantile(values, 0.5),
                     quantile(values, 0.75), quantile(values, 1));
}

std::vector<FragmentedGain> of_kind(const std::vector<FragmentedGain>& gains, bool whole) {
  std::vector<FragmentedGain> kept;
  for (const FragmentedGain& gain : gains)
    if (gain.whole_nodes == whole) kept.push_back(gain);
  return kept;
}

}  // namespace

double share_at_least(const std::vector<FragmentedGain>& gains, double gain) {
  const auto reaches = [&](const FragmentedGain& one) { return one.gain() >= gain * (1 - 1e-12); };
  return static_cast<double>(std::count_if(gains.begin(), gains.end(), reaches)) /
         static_cast<double>(gains.size());
}

std::string placement_text(const PlacementStudy& study) {
  std::string text = fmt::format("{}\n{} ranks on {} free devices; {} placements estimated{}\n\n", study.name,
                                 grouped(study.ranks), grouped(study.free), grouped(study.tried),
                                 study.exact ? ", blocks over nodes exactly" : "");
  text += fmt::format("  {:<16} {:>12} {:>14} {:>14}\n", "group", "sent, GB", "naive", "placed");
  for (const auto& [role, bytes] : study.bytes) {
    const auto seconds = [&](const PlacementStudy::Finalist& finalist) {
      const auto at = finalist.by_role.find(role);
      return at == finalist.by_role.end() ? "with next" : seconds_text(at->second);
    };
    text += fmt::format("  {:<16} {:>12.3f} {:>14} {:>14}\n", to_string(role), bytes / 1e9,
                        seconds(study.naive), seconds(study.best()));
  }
  text += fmt::format("  {:<16} {:>12} {:>14} {:>14}   estimate: {:.3f} times\n", "communication", "",
                      seconds_text(study.naive.placed.cost.seconds),
                      seconds_text(study.best().placed.cost.seconds), study.estimated_gain());
  TextTable finalists;
  for (const PlacementStudy::Finalist& finalist : study.finalists) {
    const bool naive = finalist.placed.device_of_rank == study.naive.placed.device_of_rank;
    finalists.push_back({naive ? "naive" : finalist.placed.how, seconds_text(finalist.placed.cost.seconds),
                         seconds_text(finalist.step_seconds)});
  }
  text += "\n" + fitted({{.head = "placement", .folds = true},
                         {.head = "estimate", .right = true},
                         {.head = "step", .right = true}},
                        finalists);
  text +=
      fmt::format("\nstep {} instead of {}: {:.3f} times as fast\n", seconds_text(study.best().step_seconds),
                  seconds_text(study.naive.step_seconds), study.gain());
  return text + wrapped("ranks on devices " + device_ranges(study.best().placed.device_of_rank)) + "\n";
}

std::string fragmented_text(const std::vector<FragmentedGain>& gains) {
  std::string text = "step, naive over placed\n";
  for (const FragmentedGain& gain : gains)
    text += fmt::format("  {:>6.3f}  {:<76} {} -> {}\n", gain.gain(), gain.name,
                        seconds_text(gain.naive_seconds), seconds_text(gain.placed_seconds));
  text += fmt::format("\n  {:<34} {:>5} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "gain", "cases", "least", "25%",
                      "median", "75%", "most");
  const auto step = [](const FragmentedGain& gain) { return gain.gain(); };
  const auto sent = [](const FragmentedGain& gain) { return gain.naive_estimate / gain.placed_estimate; };
  text += quantiles_text("step", gains, step);
  text += quantiles_text("step, whole nodes free", of_kind(gains, true), step);
  text += quantiles_text("step, nodes free in part", of_kind(gains, false), step);
  text += quantiles_text("communication alone, estimated", gains, sent);
  text += "\n  at least   share of cases\n";
  for (const double least : {1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0})
    text += fmt::format("  {:>7.2f}x  {:>5.1f}%  {}{}\n", least, 100 * share_at_least(gains, least),
                        bar(share_at_least(gains, least)),
                        least == kPublishedGain ? "  <- published: over 2x" : "");
  return text;
}

}  // namespace moebius
