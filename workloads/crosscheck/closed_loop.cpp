#include "workloads/crosscheck/closed_loop.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include <fmt/format.h>

namespace moebius {
namespace {

using Latency = std::function<double(const RequestTimes&)>;

std::vector<double> of_all(const std::vector<RequestTimes>& requests, std::size_t least,
                           const Latency& latency) {
  std::vector<double> values;
  for (const RequestTimes& request : requests)
    if (request.tokens.size() >= least) values.push_back(latency(request));
  return values;
}

double ttft(const RequestTimes& request) {
  return (request.tokens.front() - request.arrival).seconds();
}
double tpot(const RequestTimes& request) {
  return (request.tokens.back() - request.tokens.front()).seconds() /
         static_cast<double>(request.tokens.size() - 1);
}
double e2e(const RequestTimes& request) {
  return (request.tokens.back() - request.arrival).seconds();
}

}  // namespace

double distribution_distance(std::vector<double> a, std::vector<double> b) {
  if (a.empty() || b.empty()) return a.empty() && b.empty() ? 0 : 1;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double most = 0;
  for (const std::vector<double>* values : {&a, &b}) {
    for (const double value : *values) {
      const auto share = [value](const std::vector<double>& of) {
        return static_cast<double>(std::upper_bound(of.begin(), of.end(), value) - of.begin()) /
               static_cast<double>(of.size());
      };
      most = std::max(most, std::abs(share(a) - share(b)));
    }
  }
  return most;
}

ClosedLoop compare_latencies(const std::vector<RequestTimes>& simulated,
                             const std::vector<RequestTimes>& executed) {
  ClosedLoop loop;
  loop.requests = static_cast<std::int64_t>(executed.size());
  const auto add = [&](const char* name, std::size_t least, const Latency& latency) {
    const std::vector<double> a = of_all(simulated, least, latency), b = of_all(executed, least, latency);
    loop.latencies.push_back({name, spread_of(a), spread_of(b), distribution_distance(a, b)});
  };
  add("ttft", 1, ttft);
  add("tpot", 2, tpot);
  add("e2e", 1, e2e);
  return loop;
}

std::string to_text(const ClosedLoop& loop) {
  std::string text = fmt::format(
      "closed loop: {} requests, each side by its own clock: {} iterations simulated, {} executed\n",
      loop.requests, loop.simulated_iterations, loop.executed_iterations);
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "  {:<6} {:>24} {:>24} {:>24} {:>9}\n", "", "p50 simulated, executed",
                 "p90 simulated, executed", "p99 simulated, executed", "distance");
  for (const LatencyComparison& of : loop.latencies) {
    const auto pair = [](double a, double b) { return fmt::format("{:.4g}, {:.4g} ms", 1e3 * a, 1e3 * b); };
    fmt::format_to(out, "  {:<6} {:>24} {:>24} {:>24} {:>9.2f}\n", of.name,
                   pair(of.simulated.p50, of.executed.p50), pair(of.simulated.p90, of.executed.p90),
                   pair(of.simulated.p99, of.executed.p99), of.distance);
  }
  return text;
}

}  // namespace moebius
