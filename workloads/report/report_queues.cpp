#include "workloads/report/report_queues.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "workloads/report/number_text.h"
#include "workloads/report/report_cluster.h"

namespace moebius {

namespace {

void add(FigureTree& tree, const char* name, const RunSpread& of) {
  tree.parts.emplace_back(name, spread_tree(of));
}

FigureTree items_tree(const std::vector<RunSpread>& items) {
  FigureTree tree;
  for (std::size_t i = 0; i < items.size(); ++i)
    tree.parts.emplace_back(to_string(static_cast<CardItem>(i)), spread_tree(items[i]));
  return tree;
}

FigureTree queue_tree(const QueueOfCluster& queue) {
  FigureTree tree;
  add(tree, "quota_use", queue.held);
  add(tree, "wait_p50_s", queue.wait_p50_s);
  add(tree, "wait_p95_s", queue.wait_p95_s);
  add(tree, "wait_max_s", queue.wait_max_s);
  add(tree, "longest_wait_s", queue.longest_wait_s);
  add(tree, "slowdown_p50", queue.slowdown_p50);
  add(tree, "slowdown_p95", queue.slowdown_p95);
  add(tree, "jobs", queue.jobs);
  add(tree, "started", queue.started);
  add(tree, "done", queue.done);
  add(tree, "preempted", queue.preempted);
  add(tree, "resized", queue.resized);
  add(tree, "interrupted", queue.interrupted);
  return tree;
}

FigureTree shape_tree(const QueueFigures& figures, const ShapeOfCluster& shape) {
  FigureTree tree, pools, simulated;
  add(tree, "card_hours", shape.card_hours);
  add(tree, "tokens", shape.tokens);
  add(tree, "cost_usd", shape.cost_usd);
  if (const auto usd = shape.usd_per_million_tokens())
    tree.rows.emplace_back("usd_per_million_tokens", *usd);
  else
    tree.rows.emplace_back("usd_per_million_tokens", nullptr);
  for (std::size_t p = 0; p < shape.pools.size(); ++p)
    pools.parts.emplace_back(figures.pool_names[p], spread_tree(shape.pools[p]));
  tree.parts.emplace_back("pools", std::move(pools));
  for (const SimulatedShape& row : figures.simulated) {
    if (row.shape != shape.name || row.step.seconds <= 0) continue;
    simulated.parts.emplace_back(fmt::format("{} x {}", row.cards, row.pool),
                                 FigureTree{{{"seconds", row.step.seconds},
                                             {"tokens_per_s", row.step.tokens_per_s},
                                             {"exposed_share", row.step.exposed},
                                             {"network_share", row.step.network}},
                                            {}});
  }
  tree.parts.emplace_back("simulated", std::move(simulated));
  return tree;
}

FigureTree beside_tree(const ServiceBeside& row) {
  FigureTree tree{{{"neighbour_busy", row.busy}}, {}};
  for (const auto& [name, figures] : {std::pair{"alone", row.alone}, std::pair{"one_queue", row.one_queue},
                                      std::pair{"own_queue", row.own_queue}})
    tree.parts.emplace_back(name, FigureTree{{{"network", figures.network},
                                              {"tpot_p99_s", figures.tpot_p99_s},
                                              {"tpot_p50_s", figures.tpot_p50_s},
                                              {"tokens_per_s", figures.tokens_per_s}},
                                             {}});
  return tree;
}

using Out = std::back_insert_iterator<std::string>;

std::string hours(double seconds) {
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string hours(const RunSpread& seconds) {
  return seconds.known ? hours(seconds.mean) : "-";
}

void item_lines(Out out, const std::vector<RunSpread>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].high <= 0) continue;
    fmt::format_to(out, "  {:<18} {:6.2f}%  {}\n", to_string(static_cast<CardItem>(i)), 100 * items[i].mean,
                   bar(items[i].mean));
  }
}

void beside_lines(Out out, const QueueFigures& figures) {
  for (const ServiceBeside& row : figures.beside)
    fmt::format_to(
        out,
        "\n{} beside {} (network busy {:.0f}% of the time): p99 TPOT {} alone, {} in one queue, {} in a "
        "queue of its own\n",
        row.shape, row.neighbour, 100 * row.busy, seconds_text(row.alone.tpot_p99_s),
        seconds_text(row.one_queue.tpot_p99_s), seconds_text(row.own_queue.tpot_p99_s));
}

void queue_lines(Out out, const QueueFigures& figures) {
  fmt::format_to(out, "\n{:<16} {:>7} {:>7} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}\n", "queue",
                 "jobs", "started", "done", "of quota", "wait p50", "wait p95", "longest", "slowdown",
                 "preempt", "resize");
  for (const QueueOfCluster& queue : figures.queues)
    fmt::format_to(out,
                   "{:<16} {:>7.0f} {:>7.0f} {:>7.0f} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8.0f} {:>8.0f}\n",
                   queue.name, queue.jobs.mean, queue.started.mean, queue.done.mean,
                   queue.held.known ? fmt::format("{:.1f}%", 100 * queue.held.mean) : "-",
                   hours(queue.wait_p50_s), hours(queue.wait_p95_s), hours(queue.longest_wait_s),
                   queue.slowdown_p50.known ? fmt::format("{:.2f}", queue.slowdown_p50.mean) : "-",
                   queue.preempted.mean, queue.resized.mean);
}

void shape_lines(Out out, const QueueFigures& figures) {
  fmt::format_to(out, "\n{:<16} {:>12}  on\n", "shape", "card hours");
  for (const ShapeOfCluster& shape : figures.shapes) {
    fmt::format_to(out, "{:<16} {:>12} ", shape.name, grouped(std::llround(shape.card_hours.mean)));
    for (std::size_t p = 0; p < shape.pools.size(); ++p) {
      if (shape.pools[p].mean > 0.0005)
        fmt::format_to(out, " {} {:.0f}%", figures.pool_names[p], 100 * shape.pools[p].mean);
    }
    if (const auto usd = shape.usd_per_million_tokens())
      fmt::format_to(out, "; {:.3g} USD a million tokens\n", *usd);
    else
      fmt::format_to(out, "; - USD a million tokens\n");
  }
  for (const SimulatedShape& row : figures.simulated) {
    if (!row.step.why.empty())
      fmt::format_to(out, "  {} on {} cards of {}: not there ({})\n", row.shape, row.cards, row.pool,
                     row.step.why.substr(0, row.step.why.find('\n')));
  }
}

}  // namespace

FigureTree queues_tree(const QueueFigures& figures) {
  FigureTree tree{{{"runs", figures.runs},
                   {"devices", figures.cards},
                   {"duration_s", figures.duration_s},
                   {"events", figures.events},
                   {"longest_beside", figures.longest_beside}},
                  {}};
  add(tree, "allocation", figures.allocation);
  add(tree, "attainable", figures.attainable);
  add(tree, "utilisation", figures.utilisation);
  add(tree, "offered", figures.offered);
  add(tree, "jobs", figures.jobs);
  add(tree, "started", figures.started);
  add(tree, "done", figures.done);
  add(tree, "interruptions", figures.interruptions);
  add(tree, "borrowed", figures.borrowed);
  add(tree, "missing_replicas", figures.missing_replicas);
  add(tree, "beyond_quota", figures.beyond_quota);
  add(tree, "kept_from_owner", figures.kept_from_owner);
  add(tree, "card_ns_nowhere", figures.conservation);
  add(tree, "energy_j", figures.energy_j);
  add(tree, "peak_w", figures.peak_w);
  add(tree, "over_cap_s", figures.over_cap_s);
  add(tree, "throttled_s", figures.throttled_s);
  add(tree, "tokens", figures.tokens);
  if (figures.cost_usd.mean > 0) add(tree, "cost_usd", figures.cost_usd);
  tree.parts.emplace_back("card_time", items_tree(figures.items));
  FigureTree pools, queues, shapes, beside;
  for (const ServiceBeside& row : figures.beside) beside.parts.emplace_back(row.shape, beside_tree(row));
  if (!figures.beside.empty()) tree.parts.emplace_back("beside_training", std::move(beside));
  for (std::size_t p = 0; p < figures.pools.size(); ++p)
    pools.parts.emplace_back(figures.pool_names[p], items_tree(figures.pools[p]));
  for (const QueueOfCluster& queue : figures.queues) queues.parts.emplace_back(queue.name, queue_tree(queue));
  for (const ShapeOfCluster& shape : figures.shapes)
    shapes.parts.emplace_back(shape.name, shape_tree(figures, shape));
  tree.parts.emplace_back("pools", std::move(pools));
  tree.parts.emplace_back("queues", std::move(queues));
  tree.parts.emplace_back("shapes", std::move(shapes));
  return tree;
}

std::string queues_text(const QueueFigures& figures) {
  std::string text;
  const Out out = std::back_inserter(text);
  fmt::format_to(out, "{} cards over {}; {} courses, 5th to 95th percentile; {:.0f} events each\n\n",
                 grouped(figures.cards), to_text(time_from_seconds(figures.duration_s)),
                 grouped(figures.runs),
                 static_cast<double>(figures.events) / static_cast<double>(figures.runs));
  const auto line = [&](const char* name, const RunSpread& of, const char* what) {
    fmt::format_to(out, "  {:<18} {:6.2f}% ({:.2f} to {:.2f}) {}\n", name, 100 * of.mean, 100 * of.low,
                   100 * of.high, what);
  };
  line("allocated", figures.allocation, "of the card time that is not broken");
  line("attainable", figures.attainable, "of it at most: the rest nobody wanted, whoever schedules");
  line("utilised", figures.utilisation, "of it: work that stays, replicas that are wanted");
  line("offered", figures.offered, "of all card time");
  line("borrowed", figures.borrowed, "of all card time, beyond quotas");
  line("replicas missing", figures.missing_replicas, "of those that services want");
  fmt::format_to(out, "  jobs               {:.0f}: {:.0f} started, {:.0f} done, {:.0f} interruptions\n",
                 figures.jobs.mean, figures.started.mean, figures.done.mean, figures.interruptions.mean);
  fmt::format_to(out, "  quotas             {:.0f} times passed; {:.0f} times kept from an owner\n",
                 figures.beyond_quota.mean, figures.kept_from_owner.mean);
  fmt::format_to(out, "  energy             {} MWh at the meter, at most {:.4g} MW\n",
                 amount_text(figures.energy_j.mean / 3.6e9), figures.peak_w.mean / 1e6);
  if (figures.throttled_s.mean > 0 || figures.over_cap_s.mean > 0)
    fmt::format_to(out, "  clocks held down   {}, above the cap even so {}\n",
                   hours(figures.throttled_s.mean), hours(figures.over_cap_s.mean));
  if (figures.cost_usd.mean > 0)
    fmt::format_to(out, "  price              {} USD\n", grouped(std::llround(figures.cost_usd.mean)));
  fmt::format_to(
      out, "  shared links       beside other jobs traffic between nodes takes up to {:.2f} times as long\n",
      figures.longest_beside);
  fmt::format_to(out, "\nwhere the time of cards goes (card nanoseconds in no item: {:.0f})\n",
                 figures.conservation.mean);
  item_lines(out, figures.items);
  queue_lines(out, figures);
  shape_lines(out, figures);
  beside_lines(out, figures);
  return text;
}

}  // namespace moebius
