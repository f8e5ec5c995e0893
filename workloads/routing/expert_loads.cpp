#include "workloads/routing/expert_loads.h"

#include <algorithm>

#include <fmt/format.h>

namespace moebius {
namespace {

double share_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

void ExpertLoads::add(const Route& route) {
  const RouteSpec& spec = route.spec();
  if (!seen_.insert({spec.step, spec.layer, spec.microbatch}).second) return;
  std::int64_t kept = 0;
  int most = 0, rank = 0;
  for (int r = 0; r < spec.ranks; ++r) {
    kept += route.rows_of_rank(r);
    if (route.rows_of_rank(r) > route.rows_of_rank(rank)) rank = r;
    for (int e = 0; e < route.experts_per_rank(); ++e) most = std::max(most, route.rows(r, e));
  }
  if (kept == 0) return;
  Sum& sum = sums_[{spec.step, spec.layer}];
  const double copies = static_cast<double>(kept);
  sum.busiest_expert += most * spec.experts / copies;
  sum.busiest_rank += route.rows_of_rank(rank) * spec.ranks / copies;
  sum.rank = rank;
  ++sum.draws;
  sum.dropped += route.dropped();
  sum.copies += kept - route.padding() + route.dropped();
  sum.padding += route.padding();
  sum.rows += kept;
}

std::vector<LayerLoad> ExpertLoads::layers() const {
  std::vector<LayerLoad> rows;
  for (const auto& [key, sum] : sums_) {
    rows.push_back({key.first, key.second, sum.busiest_expert / sum.draws, sum.busiest_rank / sum.draws,
                    sum.rank, share_of(sum.dropped, sum.copies), share_of(sum.padding, sum.rows)});
  }
  return rows;
}

std::vector<double> ExpertLoads::violations() const {
  std::map<int, std::pair<double, int>> steps;
  for (const LayerLoad& row : layers()) {
    steps[row.step].first += row.busiest_expert - 1;
    ++steps[row.step].second;
  }
  std::vector<double> means;
  for (const auto& [step, sum] : steps) means.push_back(sum.first / sum.second);
  return means;
}

double ExpertLoads::dropped_share() const {
  std::int64_t dropped = 0, copies = 0;
  for (const auto& [key, sum] : sums_) dropped += sum.dropped, copies += sum.copies;
  return share_of(dropped, copies);
}

double ExpertLoads::padding_share() const {
  std::int64_t padding = 0, rows = 0;
  for (const auto& [key, sum] : sums_) padding += sum.padding, rows += sum.rows;
  return share_of(padding, rows);
}

std::string loads_text(const ExpertLoads& loads) {
  const std::vector<LayerLoad> layers = loads.layers();
  const auto by_expert = [](const LayerLoad& a, const LayerLoad& b) {
    return a.busiest_expert < b.busiest_expert;
  };
  const auto by_rank = [](const LayerLoad& a, const LayerLoad& b) { return a.busiest_rank < b.busiest_rank; };
  const LayerLoad& expert = *std::max_element(layers.begin(), layers.end(), by_expert);
  const LayerLoad& rank = *std::max_element(layers.begin(), layers.end(), by_rank);
  std::string text = "experts\n";
  text += fmt::format("  {:<28} {:.2f} x the mean (layer {}, step {})\n", "busiest expert",
                      expert.busiest_expert, expert.layer, expert.step);
  text += fmt::format("  {:<28} {:.2f} x the mean (rank {} of its group, layer {}, step {})\n",
                      "busiest rank", rank.busiest_rank, rank.rank, rank.layer, rank.step);
  const std::vector<double> violations = loads.violations();
  text += fmt::format("  {:<28} {:.2f}", "mean over layers", 1 + violations.front());
  if (violations.size() > 1)
    text += fmt::format(" in the first step, {:.2f} in the last", 1 + violations.back());
  text += "\n";
  if (loads.dropped_share() > 0)
    text +=
        fmt::format("  {:<28} {:.2f}% of copies, over capacity\n", "dropped", 100 * loads.dropped_share());
  if (loads.padding_share() > 0)
    text += fmt::format("  {:<28} {:.2f}% of the rows of experts, up to the capacity\n", "padding",
                        100 * loads.padding_share());
  return text;
}

}  // namespace moebius
