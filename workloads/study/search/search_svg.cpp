// What a search found as a picture: each plan that ran, by what its subject sets against the goal's figure.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/svg.h"
#include "workloads/report/number_text.h"
#include "workloads/study/search/search_result.h"

namespace moebius {
namespace {

constexpr double kWidth = 860, kHeight = 480, kLeft = 90, kRight = 40, kTop = 60, kBottom = 60;

double across(const SearchResult& result, const PlanFigures& figures) {
  return figures.figure(result.subject->across.key) * result.subject->across_scale;
}

struct Scale {
  double low = 0, high = 1, from = 0, to = 1;
  double at(double value) const { return from + (to - from) * (value - low) / (high - low); }
};

template <class Get>
Scale scale_of(const SearchResult& result, double from, double to, Get get) {
  Scale scale{get(result.plans.front()), get(result.plans.front()), from, to};
  for (const RankedPlan& plan : result.plans) {
    scale.low = std::min(scale.low, get(plan));
    scale.high = std::max(scale.high, get(plan));
  }
  const double margin =
      scale.high > scale.low ? 0.06 * (scale.high - scale.low) : std::max(1e-9, 0.1 * scale.high);
  scale.low -= margin, scale.high += margin;
  return scale;
}

void draw_axes(Svg& svg, const Scale& x, const Scale& y, std::string_view title) {
  for (int i = 0; i <= 5; ++i) {
    const double across = x.low + (x.high - x.low) * i / 5, up = y.low + (y.high - y.low) * i / 5;
    svg.line(kLeft, y.at(up), kWidth - kRight, y.at(up), "#e0e0e0");
    svg.text(kLeft - 8, y.at(up) + 4, figure_text(up), SvgAnchor::kEnd);
    svg.text(x.at(across), kHeight - kBottom + 20, figure_text(across), SvgAnchor::kMiddle);
  }
  svg.text((kLeft + kWidth - kRight) / 2, kHeight - 14, std::string(title), SvgAnchor::kMiddle);
}

}  // namespace

std::vector<std::size_t> pareto_front(const SearchResult& result) {
  std::vector<std::size_t> order(result.plans.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](std::size_t i) {
    const PlanFigures& figures = result.plans[i].best_known();
    return std::pair(across(result, figures), figures.score);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    if (front.empty() || key(i).second < key(front.back()).second) front.push_back(i);
  }
  return front;
}

std::string to_svg(const SearchResult& result) {
  if (result.plans.empty()) throw run_error(result.scenario + ": nothing to draw: no plan was found");
  const auto x_of = [&](const RankedPlan& plan) { return across(result, plan.best_known()); };
  const auto y_of = [](const RankedPlan& plan) { return plan.best_known().value; };
  const Scale x = scale_of(result, kLeft, kWidth - kRight, x_of);
  const Scale y = scale_of(result, kHeight - kBottom, kTop, y_of);
  Svg svg(kWidth, kHeight);
  svg.text(kLeft, 24, result.scenario, SvgAnchor::kStart, 15);
  svg.text(kLeft, 42,
           fmt::format("{} of each plan that ran; those that no other beats in both are joined",
                       name_of(result.goal)));
  draw_axes(svg, x, y, result.subject->across.title);
  const std::vector<std::size_t> front = pareto_front(result);
  for (std::size_t i = 1; i < front.size(); ++i) {
    const RankedPlan &a = result.plans[front[i - 1]], &b = result.plans[front[i]];
    svg.line(x.at(x_of(a)), y.at(y_of(a)), x.at(x_of(b)), y.at(y_of(b)), "#d06020");
  }
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    const RankedPlan& plan = result.plans[i];
    const bool best = std::find(front.begin(), front.end(), i) != front.end();
    const double half = best ? 4 : 2;
    svg.box({x.at(x_of(plan)) - half, y.at(y_of(plan)) - half, 2 * half, 2 * half},
            best ? "#d06020" : "#2060b0",
            fmt::format("{}. {}: {}, {}", i + 1, plan.name, goal_text(result.goal, plan.best_known()),
                        figure_text(x_of(plan))));
  }
  return svg.finish();
}

}  // namespace moebius
