#include "workloads/report/report_course.h"

#include <functional>
#include <iterator>

#include <fmt/format.h>

namespace moebius {
namespace {

FigureTree stalls_of(const StepStalls& stalls) {
  return {{{"barrier", stalls.barrier}, {"experts", stalls.experts}, {"moves", stalls.moves}}};
}

}  // namespace

FigureTree stalls_tree(const ServicePoolFigures& pool) {
  FigureTree tree;
  tree.rows = {{"preempted_request_s", pool.run.preempted}};
  tree.parts = {{"iteration_s", stalls_of(pool.run.totals.stalls)},
                {"request_s", stalls_of(pool.run.totals.waited)}};
  return tree;
}

std::string stalls_text(const ServiceFigures& service) {
  std::string text;
  for (const ServicePoolFigures& pool : service.pools) {
    const double busy = pool.run.totals.busy.seconds();
    const StepStalls& stalls = pool.run.totals.stalls;
    if (busy <= 0 || stalls.barrier + stalls.experts + stalls.moves <= 0) continue;
    const auto share = [&](double seconds) { return 100 * seconds / busy; };
    fmt::format_to(
        std::back_inserter(text),
        "  {}: of its iterations' time {:.1f}% is for the fullest replica, {:.1f}% for the fullest "
        "ranks of experts, {:.2f}% for weights that move\n",
        pool.run.name, share(stalls.barrier), share(stalls.experts), share(stalls.moves));
  }
  return text;
}

FigureTree series_tree(const ServiceFigures& service) {
  FigureTree tree;
  tree.rows = {{"step_s", service.series.step.seconds()}};
  for (std::size_t p = 0; p < service.pools.size(); ++p) {
    const auto list = [&](const std::function<double(const PoolMoment&)>& value) {
      std::vector<double> values;
      for (const std::vector<PoolMoment>& moment : service.series.moments) values.push_back(value(moment[p]));
      return values;
    };
    FigureTree pool;
    pool.lists = {{"waiting", list([](const PoolMoment& m) { return static_cast<double>(m.waiting); })},
                  {"running", list([](const PoolMoment& m) { return static_cast<double>(m.running); })},
                  {"blocks", list([](const PoolMoment& m) { return static_cast<double>(m.pages); })},
                  {"balancedness", list([](const PoolMoment& m) { return m.balancedness; })}};
    tree.parts.emplace_back(service.pools[p].run.name, std::move(pool));
  }
  return tree;
}

}  // namespace moebius
