#include "workloads/report/report_experts.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include "workloads/report/number_text.h"

namespace moebius {
namespace {

using Out = std::back_insert_iterator<std::string>;

struct Sums {
  std::int64_t moves = 0;
  double bytes = 0, slowed = 0, before = 0, after = 0;
};

Sums sums_of(const std::vector<Rebalance>& rebalances) {
  Sums sums;
  for (const Rebalance& of : rebalances) {
    sums.moves += of.moves;
    sums.bytes += of.bytes;
    sums.slowed += of.slowed;
    sums.before += of.before / static_cast<double>(rebalances.size());
    sums.after += of.after / static_cast<double>(rebalances.size());
  }
  return sums;
}

// Copies of a layer's busiest expert over the mean.
std::vector<double> busiest_over_mean(const ExpertFigures& experts) {
  std::vector<double> ratios;
  for (int layer = 0; layer < experts.layers; ++layer) {
    const auto first = experts.copies.begin() + std::ptrdiff_t{layer} * experts.experts;
    const double sum = std::accumulate(first, first + experts.experts, 0.0);
    ratios.push_back(sum > 0 ? *std::max_element(first, first + experts.experts) * experts.experts / sum : 1);
  }
  return ratios;
}

FigureTree rebalance_tree(const Rebalance& of, bool carried) {
  FigureTree tree{{{"at_s", of.at.seconds()},
                   {"balancedness_before", of.before},
                   {"balancedness_after", of.after},
                   {"moved_experts", of.moves},
                   {"moved_bytes", of.bytes}}};
  if (!carried) tree.rows.emplace_back("slowed_s", of.slowed);
  // Null where the run ended before.
  tree.rows.emplace_back("done_s", of.done.ns > 0 ? of.done.seconds() : std::nan(""));
  return tree;
}

// What only iterations have that were timed.
void add_timed(const ExpertFigures& experts, double slowed, FigureTree& tree) {
  tree.rows.emplace_back("timed_iterations", experts.timed_iterations);
  tree.rows.emplace_back("slowed_s", slowed);
  tree.parts.emplace_back("surface_error", FigureTree{{{"iterations", experts.error.iterations},
                                                       {"p50", experts.error.p50},
                                                       {"p90", experts.error.p90},
                                                       {"max", experts.error.worst}}});
}

FigureTree pool_tree(const ExpertFigures& experts) {
  const Sums sums = sums_of(experts.rebalances);
  FigureTree tree;
  tree.rows = {{"layers", std::int64_t{experts.layers}},
               {"experts", std::int64_t{experts.experts}},
               {"slots", std::int64_t{experts.slots}},
               {"ranks", std::int64_t{experts.ranks}},
               {"balancedness", 1 / experts.imbalance},
               {"imbalance", experts.imbalance},
               {"rebalances", static_cast<std::int64_t>(experts.rebalances.size()) + experts.more_rebalances},
               {"moved_experts", sums.moves},
               {"moved_bytes", sums.bytes}};
  if (!experts.carried) add_timed(experts, sums.slowed, tree);
  FigureTree each;
  for (std::size_t i = 0; i < experts.rebalances.size(); ++i)
    each.parts.emplace_back(std::to_string(i), rebalance_tree(experts.rebalances[i], experts.carried));
  if (!each.parts.empty()) tree.parts.emplace_back("placements", std::move(each));
  FigureTree busiest;
  const std::vector<double> ratios = busiest_over_mean(experts);
  for (std::size_t i = 0; i < ratios.size(); ++i)
    busiest.rows.emplace_back(std::to_string(experts.layer_numbers[i]), ratios[i]);
  tree.parts.emplace_back("busiest_expert_over_mean", std::move(busiest));
  return tree;
}

void pool_lines(Out out, const std::string& name, const ExpertFigures& experts) {
  const std::vector<double> ratios = busiest_over_mean(experts);
  fmt::format_to(
      out,
      "  {}: {} experts of {} layers in {} slots of {} ranks; balancedness {:.3f} (mean over fullest "
      "rank), a layer's busiest expert gets {:.2f} to {:.2f} times the mean\n",
      name, experts.experts, experts.layers, experts.slots, experts.ranks, 1 / experts.imbalance,
      *std::min_element(ratios.begin(), ratios.end()), *std::max_element(ratios.begin(), ratios.end()));
  if (!experts.rebalances.empty()) {
    const Sums sums = sums_of(experts.rebalances);
    fmt::format_to(
        out,
        "  {}: placed anew {} times, balancedness {:.3f} before and {:.3f} after on average; {} experts "
        "moved, {}{}\n",
        name, grouped(static_cast<std::int64_t>(experts.rebalances.size()) + experts.more_rebalances),
        sums.before, sums.after, grouped(sums.moves), to_text(Bytes{sums.bytes}),
        experts.carried
            ? ""
            : fmt::format(", and iterations were {} longer beside that", seconds_text(sums.slowed)));
  }
  if (experts.carried) return;
  fmt::format_to(
      out,
      "  {}: {} iterations timed with uneven loads or moves; of {} measured again with the loads of "
      "their moment, half are within {:.1f}%, nine of ten within {:.1f}%\n",
      name, grouped(experts.timed_iterations), experts.error.iterations, 100 * experts.error.p50,
      100 * experts.error.p90);
}

}  // namespace

FigureTree experts_tree(const ServiceFigures& service) {
  FigureTree tree;
  for (const ServicePoolFigures& pool : service.pools)
    if (pool.experts) tree.parts.emplace_back(pool.run.name, pool_tree(*pool.experts));
  return tree;
}

std::string experts_text(const ServiceFigures& service) {
  std::string text;
  for (const ServicePoolFigures& pool : service.pools)
    if (pool.experts) pool_lines(std::back_inserter(text), pool.run.name, *pool.experts);
  return text;
}

}  // namespace moebius
