#include "workloads/validation/servers/server_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "hw/reader.h"
#include "workloads/serving/frameworks.h"
#include "workloads/validation/servers/server_errors.h"
#include "workloads/validation/servers/server_rules.h"
#include "workloads/validation/servers/server_scenario.h"
#include "workloads/validation/servers/server_start.h"

namespace moebius {
namespace {

// Microseconds of a request, and of each token of its prompt.
constexpr std::array kPerRequest{0,     5000,  10000, 15000, 20000, 25000,
                                 30000, 40000, 50000, 60000, 80000, 110000};
constexpr std::array kPerToken{0, 1, 2, 3, 5, 7, 9, 11, 13, 15};
constexpr int kMostUsersForFit = 64;  // beyond it first tokens wait for others, not for the host
constexpr double kMost = 1;           // of a row's loss: one that no host explains does not decide

// What is simulated, and what was measured.
struct FittedRow {
  double tokens = 0;  // of its prompt
  double before = 0;  // seconds of ours in which the host reads it, were it alone
  double ours = 0, measured = 0;
};

struct Candidate {
  int per_request = 0, per_token = 0;
  double seconds(double tokens) const { return 1e-6 * (per_request + per_token * tokens); }
};

// As its rules say, and the framework where they do not.
double read_by_host(const ServerRow& row, const ModelCatalog& models, const Framework& framework) {
  const std::string scheduler = server_start(row, models.model(row.model), {}).scheduler;
  const Document document = parse_document(scheduler.empty() ? "{}" : scheduler, "scheduler");
  Reader said(document);
  const Time request = said.time("host_per_request", framework.host_per_request);
  Time token = said.time("host_per_prompt_token", framework.host_per_prompt_token);
  if (std::optional<Reader> stages = said.optional_object("host_overhead"))
    token += stages->time("per_prompt_token", Time{});
  return request.seconds() + token.seconds() * mean_input(row);
}

double mean_loss(const std::vector<FittedRow>& rows, const Candidate& host) {
  double sum = 0;
  for (const FittedRow& row : rows) {
    const double ours = std::max(1e-4, row.ours - row.before + host.seconds(row.tokens));
    sum += std::min(kMost, std::abs(std::log(ours / row.measured)));
  }
  return sum / static_cast<double>(rows.size());
}

FittedHost fit(const Framework& preset, const std::vector<FittedRow>& rows) {
  FittedHost best{.framework = std::string(preset.name), .rows = static_cast<int>(rows.size())};
  best.loss = best.loss_without = mean_loss(rows, {});
  for (const int request : kPerRequest)
    for (const int token : kPerToken) {
      const double loss = mean_loss(rows, {request, token});
      if (loss >= best.loss) continue;
      best.loss = loss;
      best.per_request = Time{std::int64_t{1000} * request};
      best.per_token = Time{std::int64_t{1000} * token};
    }
  return best;
}

}  // namespace

std::vector<FittedHost> fit_host_costs(const std::vector<ServerRow>& rows, const Library& library,
                                       const StartExecutor& start) {
  std::vector<ServerRow> kept;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(kept), [](const ServerRow& row) {
    return row.for_fit && is_inferencemax(row) && !row.apart() && row.users <= kMostUsersForFit;
  });
  const std::vector<ServerResult> results = simulate_servers(kept, library, start, 0, 0);
  std::vector<FittedHost> fits;
  for (const Framework& framework : frameworks()) {
    std::vector<FittedRow> of;
    for (const ServerResult& result : results)
      if (result.left_out.empty() && result.row.backend == framework.name)
        of.push_back({mean_input(result.row), read_by_host(result.row, library.models, framework),
                      result.ttft, result.row.ttft});
    if (!of.empty()) fits.push_back(fit(framework, of));
  }
  return fits;
}

std::string fit_text(const std::vector<FittedHost>& fits) {
  std::string text = fmt::format("{:<10}{:>6}{:>20}{:>22}{:>16}{:>10}\n", "framework", "rows",
                                 "host, a request", "a token of its prompt", "loss without", "loss");
  for (const FittedHost& fit : fits)
    text += fmt::format("{:<10}{:>6}{:>17.1f} ms{:>19.1f} us{:>16.3f}{:>10.3f}\n", fit.framework, fit.rows,
                        fit.per_request.seconds() * 1e3, fit.per_token.seconds() * 1e6, fit.loss_without,
                        fit.loss);
  return text;
}

}  // namespace moebius
