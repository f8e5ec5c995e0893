#include "workloads/report/report_cluster.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "workloads/report/number_text.h"

namespace moebius {

namespace {

FigureTree job_tree(const ClusterFigures& cluster, const ClusterJobFigures& job) {
  FigureTree tree{{{"nodes", std::int64_t{job.nodes}}, {"done_share", job.done}}, {}};
  const std::optional<double> stall = job.checkpoint_stall_s;
  for (const auto& [name, seconds] :
       {std::pair{"checkpoint_interval_s", job.checkpoint_interval_s}, std::pair{"checkpoint_stall_s", stall},
        std::pair{"young_interval_s", job.young_interval_s},
        std::pair{"daly_interval_s", job.daly_interval_s}}) {
    if (job.saves && seconds)
      tree.rows.emplace_back(name, *seconds);
    else
      tree.rows.emplace_back(name, nullptr);
  }
  tree.parts.emplace_back("effective_time", spread_tree(job.effective));
  tree.parts.emplace_back("interruptions", spread_tree(job.interruptions));
  tree.parts.emplace_back("mtbf_h", spread_tree(job.mtbf_h));
  tree.parts.emplace_back("end_s", spread_tree(job.end_s));
  FigureTree items, kinds;
  for (std::size_t i = 0; i < job.items.size(); ++i)
    items.parts.emplace_back(std::string(to_string(static_cast<TimeItem>(i))) + "_s",
                             spread_tree(job.items[i]));
  for (std::size_t i = 0; i < job.kinds.size(); ++i)
    kinds.parts.emplace_back(cluster.kinds[i], spread_tree(job.kinds[i]));
  tree.parts.emplace_back("time", std::move(items));
  tree.parts.emplace_back("causes", std::move(kinds));
  return tree;
}

using Out = std::back_insert_iterator<std::string>;

std::string or_none(std::optional<double> seconds) {
  return seconds ? seconds_text(*seconds) : "none";
}

void checkpoint_line(Out out, const ClusterJobFigures& job) {
  if (!job.checkpoint_interval_s)
    fmt::format_to(out, "  checkpoints        none, as nothing fails\n");
  else
    fmt::format_to(out, "  checkpoints        every {}, which takes {}; best by Young {}, by Daly {}\n",
                   seconds_text(*job.checkpoint_interval_s), seconds_text(job.checkpoint_stall_s),
                   or_none(job.young_interval_s), or_none(job.daly_interval_s));
}

void end_line(Out out, const ClusterJobFigures& job) {
  if (!job.end_s.known)
    fmt::format_to(out, "  end                -, as it arrives after all that is simulated\n");
  else if (job.has_work)
    fmt::format_to(out, "  end                at {} ({} to {}), done in {:.0f}% of the courses\n",
                   seconds_text(job.end_s.mean), seconds_text(job.end_s.low), seconds_text(job.end_s.high),
                   100 * job.done);
}

void job_lines(Out out, const ClusterFigures& cluster, const ClusterJobFigures& job) {
  double all = 0;
  for (const RunSpread& item : job.items) all += item.mean;
  fmt::format_to(out, "\n{} on {} nodes: ", job.name, grouped(job.nodes));
  if (job.effective.known)
    fmt::format_to(out, "effective {:.2f}% of its time since it started ({:.2f} to {:.2f})\n",
                   100 * job.effective.mean, 100 * job.effective.low, 100 * job.effective.high);
  else
    fmt::format_to(out, "never started\n");
  end_line(out, job);
  if (job.mtbf_h.known)
    fmt::format_to(out, "  interruptions      {:.1f} ({:.0f} to {:.0f}), one in {:.3g} h\n",
                   job.interruptions.mean, job.interruptions.low, job.interruptions.high, job.mtbf_h.mean);
  else
    fmt::format_to(out, "  interruptions      none\n");
  if (job.saves) checkpoint_line(out, job);
  for (std::size_t i = 0; i < job.items.size(); ++i) {
    if (job.items[i].mean <= 0) continue;
    fmt::format_to(out, "  {:<18} {:>10}  {:6.3f}%  {}\n", to_string(static_cast<TimeItem>(i)),
                   seconds_text(job.items[i].mean), 100 * job.items[i].mean / all,
                   bar(job.items[i].mean / all));
  }
  for (std::size_t i = 0; i < job.kinds.size(); ++i) {
    if (job.kinds[i].mean > 0)
      fmt::format_to(out, "    {:<16} {:8.1f} times ({:.0f} to {:.0f})\n", cluster.kinds[i],
                     job.kinds[i].mean, job.kinds[i].low, job.kinds[i].high);
  }
}

}  // namespace

FigureTree spread_tree(const RunSpread& of) {
  if (!of.known) return {{{"mean", nullptr}, {"p5", nullptr}, {"p95", nullptr}}, {}};
  return {{{"mean", of.mean}, {"p5", of.low}, {"p95", of.high}}, {}};
}

FigureTree cluster_tree(const ClusterFigures& figures) {
  FigureTree tree{{{"runs", figures.runs},
                   {"nodes", std::int64_t{figures.nodes}},
                   {"devices", std::int64_t{figures.devices}},
                   {"spares", std::int64_t{figures.spares}},
                   {"duration_s", figures.duration_s}},
                  {}};
  tree.parts.emplace_back("effective_time", spread_tree(figures.effective));
  tree.parts.emplace_back("interruptions", spread_tree(figures.interruptions));
  tree.parts.emplace_back("allocation", spread_tree(figures.allocation));
  tree.parts.emplace_back("nodes_in_repair", spread_tree(figures.down));
  tree.parts.emplace_back("least_free_nodes", spread_tree(figures.least_free));
  tree.parts.emplace_back("energy_j", spread_tree(figures.energy_j));
  const bool priced = figures.cost_usd.mean > 0;
  if (priced) tree.parts.emplace_back("cost_usd", spread_tree(figures.cost_usd));
  if (figures.tokens.mean > 0) {
    tree.parts.emplace_back("tokens", spread_tree(figures.tokens));
    tree.rows.emplace_back("joule_per_token", figures.energy_j.mean / figures.tokens.mean);
    if (priced)
      tree.rows.emplace_back("usd_per_million_tokens", 1e6 * figures.cost_usd.mean / figures.tokens.mean);
  }
  FigureTree jobs;
  for (const ClusterJobFigures& job : figures.jobs) jobs.parts.emplace_back(job.name, job_tree(figures, job));
  tree.parts.emplace_back("jobs", std::move(jobs));
  return tree;
}

std::string cluster_text(const ClusterFigures& figures) {
  std::string text;
  const Out out = std::back_inserter(text);
  fmt::format_to(
      out, "{} nodes of {} devices over {}, {} of them spare; {} courses, 5th to 95th percentile\n\n",
      grouped(figures.nodes), figures.devices / std::max(1, figures.nodes),
      to_text(time_from_seconds(figures.duration_s)), grouped(figures.spares), grouped(figures.runs));
  fmt::format_to(out, "  effective time     {:.2f}% ({:.2f} to {:.2f})\n", 100 * figures.effective.mean,
                 100 * figures.effective.low, 100 * figures.effective.high);
  fmt::format_to(out, "  interruptions      {:.1f} ({:.0f} to {:.0f})\n", figures.interruptions.mean,
                 figures.interruptions.low, figures.interruptions.high);
  fmt::format_to(out,
                 "  allocated          {:.2f}% of all nodes' time; {:.2f}% in repair; at least {:.0f} free\n",
                 100 * figures.allocation.mean, 100 * figures.down.mean, figures.least_free.mean);
  fmt::format_to(out, "  energy             {} MWh at the meter\n",
                 amount_text(figures.energy_j.mean / 3.6e9));
  if (figures.cost_usd.mean > 0)
    fmt::format_to(out, "  price              {} USD\n", grouped(std::llround(figures.cost_usd.mean)));
  if (figures.tokens.mean > 0)
    fmt::format_to(out, "  tokens             {:.4g}: {:.3g} J each{}\n", figures.tokens.mean,
                   figures.energy_j.mean / figures.tokens.mean,
                   figures.cost_usd.mean > 0
                       ? fmt::format(", {:.4g} USD a million",
                                     1e6 * figures.cost_usd.mean / figures.tokens.mean)
                       : "");
  for (const ClusterJobFigures& job : figures.jobs) job_lines(out, figures, job);
  return text;
}

}  // namespace moebius
