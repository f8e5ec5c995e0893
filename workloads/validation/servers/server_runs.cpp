// Rows of measured servers, simulated.
#include <algorithm>
#include <map>
#include <utility>

#include "workloads/crew.h"
#include "workloads/validation/servers/server_errors.h"
#include "workloads/validation/servers/server_run.h"
#include "workloads/validation/servers/server_scenario.h"
#include "workloads/validation/servers/sha256.h"

namespace moebius {
namespace {

// Those that are simulated: all, or the first by the hash of seed and key.
std::vector<std::size_t> chosen(const std::vector<ServerRow>& rows,
                                const std::vector<ServerScenario>& scenarios, std::int64_t most,
                                std::uint64_t seed) {
  std::vector<std::pair<int, std::size_t>> order;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!scenarios[i].scenario) continue;
    const int drawn = most > 0 ? sha256_modulo(std::to_string(seed) + rows[i].key, 1 << 22) : 0;
    order.emplace_back(drawn, i);
  }
  std::sort(order.begin(), order.end());
  if (most > 0 && order.size() > static_cast<std::size_t>(most)) order.resize(most);
  std::vector<std::size_t> places;
  for (const auto& [drawn, i] : order) places.push_back(i);
  return places;
}

}  // namespace

std::vector<ServerResult> simulate_servers(const std::vector<ServerRow>& rows, const Library& library,
                                           const StartExecutor& start, std::int64_t most,
                                           std::uint64_t seed) {
  std::vector<ServerScenario> scenarios;
  std::vector<ServerResult> results;
  for (const ServerRow& row : rows) {
    scenarios.push_back(server_scenario(row, library.models));
    const ServerScenario& made = scenarios.back();
    results.push_back({row, made.scenario ? "not drawn" : made.left_out});
  }
  std::map<std::string, std::vector<std::size_t>> by_configuration;
  for (const std::size_t i : chosen(rows, scenarios, most, seed))
    by_configuration[scenarios[i].configuration].push_back(i);
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [configuration, of] : by_configuration) groups.push_back(std::move(of));
  work_side_by_side(groups.size(), [&](std::size_t g) {
    StepTimings timings;
    for (const std::size_t i : groups[g]) {
      const ServerRun run = run_server(*scenarios[i].scenario, library, start, timings);
      results[i].left_out = run.failure;
      results[i].ttft = run.ttft, results[i].tpot = run.tpot;
      results[i].ttft_median = run.ttft_median, results[i].tpot_median = run.tpot_median;
      results[i].devices = run.devices;
    }
  });
  return results;
}

}  // namespace moebius
