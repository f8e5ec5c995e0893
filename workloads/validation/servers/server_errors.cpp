#include "workloads/validation/servers/server_errors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace moebius {
namespace {

using ErrorOfResult = double (ServerResult::*)() const;

double at_share(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (place - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

ErrorSummary errors_of(const std::vector<const ServerResult*>& results, ErrorOfResult error) {
  std::vector<double> absolute, sign;
  for (const ServerResult* result : results) {
    sign.push_back((result->*error)());
    absolute.push_back(std::abs(sign.back()));
  }
  std::sort(absolute.begin(), absolute.end());
  std::sort(sign.begin(), sign.end());
  return {static_cast<int>(results.size()), at_share(absolute, 0.5), at_share(absolute, 0.9),
          at_share(sign, 0.5)};
}

// Ranks from 0; equals share the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (std::size_t k = i; k < end; ++k) ranks[order[k]] = (static_cast<double>(i + end) - 1) / 2;
    i = end;
  }
  return ranks;
}

// Spearman's rho: the correlation of ranks.
double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

using Results = std::vector<const ServerResult*>;
using Name = std::function<std::string(const ServerRow&)>;

void add_groups(const Results& scored, const char* by, const Name& name, std::vector<ServerGroup>& groups) {
  std::map<std::string, Results> parts;
  for (const ServerResult* result : scored) parts[name(result->row)].push_back(result);
  for (const auto& [part, results] : parts)
    groups.push_back({by, part, errors_of(results, &ServerResult::ttft_error),
                      errors_of(results, &ServerResult::tpot_error)});
}

std::vector<RankCorrelation> correlations(const Results& scored) {
  std::map<std::pair<std::string, std::string>, Results> parts;
  for (const ServerResult* result : scored) parts[{result->row.system, result->row.model}].push_back(result);
  std::vector<RankCorrelation> all;
  for (const auto& [of, results] : parts) {
    if (results.size() < 3) continue;
    std::vector<double> theirs, ours;
    for (const ServerResult* r : results) {
      theirs.push_back(r->row.throughput(r->row.ttft, r->row.tpot));
      ours.push_back(r->row.throughput(r->ttft, r->tpot));
    }
    all.push_back({of.first, of.second, static_cast<int>(results.size()), spearman(ours, theirs)});
  }
  return all;
}

}  // namespace

ServerSummary summary_of(const std::vector<ServerResult>& results) {
  ServerSummary summary;
  summary.rows = static_cast<int>(results.size());
  Results scored;
  for (const ServerResult& result : results) {
    if (!result.left_out.empty()) {
      ++summary.left_out[result.left_out];
    } else if (result.row.for_fit) {
      ++summary.for_fit;
    } else {
      scored.push_back(&result);
    }
  }
  summary.scored = static_cast<int>(scored.size());
  add_groups(
      scored, "all", [](const ServerRow&) { return std::string("all"); }, summary.groups);
  add_groups(
      scored, "system", [](const ServerRow& row) { return row.system; }, summary.groups);
  add_groups(
      scored, "framework", [](const ServerRow& row) { return row.backend; }, summary.groups);
  add_groups(
      scored, "model", [](const ServerRow& row) { return row.model; }, summary.groups);
  add_groups(
      scored, "mode", [](const ServerRow& row) { return row.mode; }, summary.groups);
  add_groups(
      scored, "format",
      [](const ServerRow& row) { return row.precision.empty() ? std::string("bf16") : row.precision; },
      summary.groups);
  summary.ranks = correlations(scored);
  int rows = 0;
  for (const RankCorrelation& rank : summary.ranks)
    rows += rank.rows, summary.rank_correlation += rank.spearman * rank.rows;
  if (rows > 0) summary.rank_correlation /= rows;
  return summary;
}

}  // namespace moebius
