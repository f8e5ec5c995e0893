#include "workloads/serving/figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moebius {
namespace {

double at_share(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

double tpot_of(const RequestTimes& request) {
  const double span = (request.tokens.back() - request.tokens.front()).seconds();
  return span / static_cast<double>(std::max<std::size_t>(1, request.tokens.size() - 1));
}

bool meets(const RequestTimes& request, const ServiceGoal& goal) {
  const bool first = goal.ttft.ns == 0 || request.tokens.front() - request.arrival <= goal.ttft;
  return first && (goal.tpot.ns == 0 || tpot_of(request) <= goal.tpot.seconds());
}

struct Samples {
  std::vector<double> ttft, tpot, itl, e2e;

  void add(const RequestTimes& request) {
    ttft.push_back((request.tokens.front() - request.arrival).seconds());
    e2e.push_back((request.tokens.back() - request.arrival).seconds());
    if (request.tokens.size() > 1) tpot.push_back(tpot_of(request));
    for (std::size_t i = 1; i < request.tokens.size(); ++i)
      itl.push_back((request.tokens[i] - request.tokens[i - 1]).seconds());
  }
};

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {.none = true};
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), at_share(values, 0.5), at_share(values, 0.9),
          at_share(values, 0.95), at_share(values, 0.99)};
}

ServingFigures serving_figures(const std::vector<RequestTimes>& requests, const ServiceGoal& goal) {
  ServingFigures figures;
  Samples samples;
  Time first = kForever, end;
  double input = 0, output = 0, good = 0;
  for (const RequestTimes& request : requests) {
    ++figures.submitted;
    if (static_cast<int>(request.tokens.size()) < request.output) continue;
    ++figures.completed;
    samples.add(request);
    first = std::min(first, request.arrival);
    end = std::max(end, request.tokens.back());
    input += request.input;
    output += request.output;
    good += meets(request, goal) ? 1 : 0;
  }
  figures.ttft = spread_of(std::move(samples.ttft));
  figures.tpot = spread_of(std::move(samples.tpot));
  figures.itl = spread_of(std::move(samples.itl));
  figures.e2e = spread_of(std::move(samples.e2e));
  if (end <= first) return figures;
  const double seconds = (end - first).seconds();
  figures.output_tokens_per_s = output / seconds;
  figures.input_tokens_per_s = input / seconds;
  figures.goodput_rps = good / seconds;
  figures.slo_attainment = good / static_cast<double>(figures.submitted);
  return figures;
}

}  // namespace moebius
