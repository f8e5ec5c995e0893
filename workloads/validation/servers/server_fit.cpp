#include "workloads/validation/servers/server_fit.h"

#include <array>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "workloads/crew.h"
#include "workloads/validation/servers/server_run.h"
#include "workloads/validation/servers/server_scenario.h"

namespace moebius {
namespace {

// Microseconds.
constexpr std::array kPerIteration{0, 100, 200, 400, 600, 800, 1000, 1500, 2000, 3000, 4000};
constexpr std::array kPerRequest{0, 5000, 10000, 15000, 20000, 30000, 40000, 50000, 70000, 100000};

struct Candidate {
  int per_iteration = 0, per_request = 0;
};

struct FittedRow {
  ServerRow row;
  Document scenario;
  std::string configuration;
};

// |ln(ours / measured)|, of the first and of further tokens; nothing where the row does not run.
struct Loss {
  double ttft = 0, tpot = 0;
};

std::optional<Loss> loss_of(const FittedRow& row, const Candidate& host, const Library& library,
                            const StartExecutor& start, StepTimings& timings) {
  Document scenario = row.scenario;
  const auto set = [&](const char* key, int microseconds) {
    set_at_pointer(scenario, fmt::format("/plan/scheduler/{}", key), fmt::format("\"{} us\"", microseconds));
  };
  set("host_per_iteration", host.per_iteration);
  set("host_per_request", host.per_request);
  const ServerRun run = run_server(scenario, library, start, timings);
  if (!run.failure.empty()) return std::nullopt;
  return Loss{std::abs(std::log(run.ttft / row.row.ttft)), std::abs(std::log(run.tpot / row.row.tpot))};
}

class HostFit {
 public:
  HostFit(std::vector<FittedRow> rows, const Library& library, const StartExecutor& start)
      : rows_(std::move(rows)), library_(library), start_(start) {}

  FittedHost fit(const std::string& framework) {
    Candidate best;
    FittedHost result{.framework = framework, .rows = 0};
    const Loss before = mean_loss(best);
    Loss least = before;
    for (const int us : kPerIteration) {
      const Loss loss = mean_loss({us, 0});
      if (loss.tpot < least.tpot) least = loss, best.per_iteration = us;
    }
    for (const int us : kPerRequest) {
      const Loss loss = mean_loss({best.per_iteration, us});
      if (loss.ttft < least.ttft) least = loss, best.per_request = us;
    }
    result.rows = counted_;
    result.per_iteration = Time{std::int64_t{1000} * best.per_iteration};
    result.per_request = Time{std::int64_t{1000} * best.per_request};
    result.loss_without = (before.ttft + before.tpot) / 2, result.loss = (least.ttft + least.tpot) / 2;
    return result;
  }

 private:
  Loss mean_loss(const Candidate& host) {
    std::vector<std::optional<Loss>> losses(rows_.size());
    std::map<std::string, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < rows_.size(); ++i) groups[rows_[i].configuration].push_back(i);
    std::vector<std::pair<std::string, std::vector<std::size_t>>> order(groups.begin(), groups.end());
    for (const auto& [configuration, of] : order) timings_.try_emplace(configuration);
    work_side_by_side(order.size(), [&](std::size_t g) {
      StepTimings& timings = timings_.at(order[g].first);
      for (const std::size_t i : order[g].second)
        losses[i] = loss_of(rows_[i], host, library_, start_, timings);
    });
    Loss sum;
    counted_ = 0;
    for (const std::optional<Loss>& loss : losses)
      if (loss) sum.ttft += loss->ttft, sum.tpot += loss->tpot, ++counted_;
    if (counted_ > 0) sum.ttft /= counted_, sum.tpot /= counted_;
    return sum;
  }

  std::vector<FittedRow> rows_;
  const Library& library_;
  const StartExecutor& start_;
  std::map<std::string, StepTimings> timings_;
  int counted_ = 0;
};

}  // namespace

std::vector<FittedHost> fit_host_costs(const std::vector<ServerRow>& rows, const Library& library,
                                       const StartExecutor& start) {
  std::map<std::string, std::vector<FittedRow>> of_framework;
  for (const ServerRow& row : rows) {
    if (!row.for_fit) continue;
    ServerScenario made = server_scenario(row, library.models);
    if (made.scenario)
      of_framework[row.backend].push_back({row, std::move(*made.scenario), made.configuration});
  }
  std::vector<FittedHost> fits;
  for (auto& [framework, of] : of_framework)
    fits.push_back(HostFit(std::move(of), library, start).fit(framework));
  return fits;
}

std::string fit_text(const std::vector<FittedHost>& fits) {
  std::string text = fmt::format("{:<10}{:>6}{:>22}{:>20}{:>16}{:>10}\n", "framework", "rows",
                                 "host, an iteration", "a request", "loss without", "loss");
  for (const FittedHost& fit : fits)
    text += fmt::format("{:<10}{:>6}{:>19.2f} ms{:>17.1f} ms{:>16.3f}{:>10.3f}\n", fit.framework, fit.rows,
                        fit.per_iteration.seconds() * 1e3, fit.per_request.seconds() * 1e3, fit.loss_without,
                        fit.loss);
  return text;
}

}  // namespace moebius
