#include "workloads/study/search/pool_rates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "hw/error.h"
#include "models/model.h"
#include "workloads/cost/roofline.h"
#include "workloads/service/rules.h"
#include "workloads/service/timed_pool.h"

namespace moebius {
namespace {

double peak_of(const Accelerator& chip, const ServingPlan& plan) {
  const double dense = chip.peak_of(executed_dtype(chip, plan.gemm)).value;
  const double experts = chip.peak_of(executed_dtype(chip, plan.expert_gemm.value_or(plan.gemm))).value;
  return std::max(dense, experts);
}

double peak_of(const Scenario& scenario, const ServicePhase& phase) {
  const std::vector<Pool>& pools = scenario.cluster->pools;
  double peak =
      peak_of(pools[phase.pool].accelerator, phase.plan) * phase.plan.dp * phase.plan.tp * phase.plan.pp;
  if (phase.expert_pool >= 0)
    peak += peak_of(pools[phase.expert_pool].accelerator, phase.plan) * phase.plan.apart.ranks;
  return peak;
}

// From `least` on: every `parts`-th of a power of two up to `most`, and that itself.
std::vector<std::int64_t> edges(std::int64_t least, std::int64_t most, std::int64_t parts) {
  std::vector<std::int64_t> all;
  for (std::int64_t power = 1; power <= most; power *= 2)
    for (std::int64_t value = power; value < 2 * power && value < most;
         value += std::max<std::int64_t>(1, power / parts))
      if (value >= least) all.push_back(value);
  all.push_back(most);
  return all;
}

std::int64_t edge_below(std::int64_t keys) {
  std::int64_t edge = 1;
  while (edge * 16 <= keys) edge *= 16;
  return edge;
}

// One instance of a pool, its iterations asked for one by one.
class FullIterations {
 public:
  FullIterations(const Scenario& scenario, const ServicePool& pool, const SeatLimits& limits,
                 const PoolRoom& room, const ServingDemand& demand, const StartExecutor& start,
                 StepTimings& timings)
      : pool_(pool),
        limits_(limits),
        room_(room),
        demand_(demand),
        shared_(scenario.service.prefix_cache),
        timed_(pool, scenario.served.popularity, start, &timings) {
    if (scenario.model.experts.routed == 0) return;
    course_.emplace(scenario.served.popularity, scenario.traffic.drift, scenario.seed, scenario.model);
    timed_.place_experts(scenario, *course_);
  }

  // Prompts of an instance. One that is not cut, or is longer than the budget, has an iteration alone.
  TokenCounts prompts() {
    const std::int64_t most = std::max(limits_.token_budget, pool_.phase.chunked ? 0 : demand_.most_input);
    TokenCounts best{};
    for (const std::int64_t rows : edges(std::max<std::int64_t>(1, most / 8), most, 4)) {
      for (const std::int64_t keys : prompt_keys()) {
        const double rate = static_cast<double>(rows) / seconds_of_prompts(rows, keys, 1);
        for (std::size_t w = 0; w < best.size(); ++w)
          best[w] = std::max(best[w], pool_.phase.plan.replicas() * rate * counted(w, keys));
      }
    }
    return best;
  }

  double shortest_prompt() {
    double least = kForeverLong;
    for (const std::int64_t keys : prompt_keys())
      least = std::min(least, seconds_of_prompts(1, keys, alone()));
    return least;
  }

  double shortest_answer() { return timed_.surface().at({0, 0, 1, demand_.least_input + 1, alone()}); }

  // Answers of an instance: all, and those of requests that are given `promised`.
  void set_answers(PoolRates& rates, double promised) {
    const double tokens = 1.0 + pool_.phase.plan.drafts;  // of a sequence, at most
    const Grid grid = answers();
    const double g = promised * tokens;
    for (std::size_t w = 0; w < kKeyWeights.size(); ++w) {
      rates.answers[w] = pool_.phase.plan.replicas() * tokens * grid.most_a_second(w, 0, 0);
      rates.kept[w] = rates.answers[w];
      for (double u = 1 / (64 * g); promised > 0 && u < 64 / g; u *= 1.5)
        rates.kept[w] = std::min(
            rates.kept[w], pool_.phase.plan.replicas() * tokens * std::max(0.0, grid.most_a_second(w, u, g)));
    }
  }

 private:
  // By heads or absorbed, where its engine does either: the shorter of both.
  double seconds_of_prompts(std::int64_t rows, std::int64_t keys, double others) {
    const StepPoint point{.prefill_tokens = rows, .prefill_keys = keys, .others = others};
    const double seconds = timed_.surface().at(point);
    if (absorbed_below(pool_) <= 1) return seconds;
    StepPoint absorbed = point;
    absorbed.absorbed = true;
    return std::min(seconds, timed_.surface().at(absorbed));
  }

  static double counted(std::size_t weight, std::int64_t keys) {
    return 1 + kKeyWeights[weight] * static_cast<double>(keys);
  }

  // Seconds of iterations of so many sequences with so many keys each.
  struct Grid {
    std::vector<std::int64_t> sequences, keys;
    std::vector<double> seconds;  // by sequences, then keys
    double room = 0;              // keys of a replica

    double tokens(std::size_t weight, std::size_t s, std::size_t k) const {
      return static_cast<double>(sequences[s]) * counted(weight, keys[k]);
    }
    double rate(std::size_t weight, std::size_t s, std::size_t k) const {
      return tokens(weight, s, k) / seconds[s * keys.size() + k];
    }
    // Cell by cell, each with its fewest tokens; cells that no cache has room for hold nothing.
    double most_a_second(std::size_t weight, double u, double g) const {
      double best = -kForeverLong;
      for (std::size_t s = 0; s < sequences.size(); ++s) {
        for (std::size_t k = 0; k < keys.size(); ++k) {
          const std::size_t less_s = s > 0 ? s - 1 : s, less_k = k > 0 ? k - 1 : k;
          if (s > 0 && static_cast<double>(sequences[less_s] * keys[less_k]) > room) continue;
          const double most = std::max({rate(weight, s, k), rate(weight, less_s, k), rate(weight, s, less_k),
                                        rate(weight, less_s, less_k)});
          best = std::max(best, most * (1 + u * g) - u * tokens(weight, less_s, less_k));
        }
      }
      return best;
    }
  };

  Grid answers() {
    Grid grid;
    grid.sequences = edges(1, limits_.max_batch, 2);
    const std::int64_t most = demand_.most_input + demand_.most_output;
    for (std::int64_t keys = demand_.least_input + 1; keys < most; keys = 16 * edge_below(keys))
      grid.keys.push_back(keys);
    grid.keys.push_back(most);
    for (const std::int64_t sequences : grid.sequences)
      for (const std::int64_t keys : grid.keys)
        grid.seconds.push_back(timed_.surface().at({0, 0, sequences, keys, 1}));
    const double spare = 2.0 * pool_.phase.plan.block_tokens;
    grid.room = shared_ ? kForeverLong : static_cast<double>(room_.cache_tokens) + spare;
    return grid;
  }

  // Edges around those that a prompt's tokens may have on average.
  std::vector<std::int64_t> prompt_keys() const {
    std::vector<std::int64_t> all{edge_below(std::max<std::int64_t>(1, (demand_.least_input + 1) / 2))};
    while (all.back() < demand_.most_input) all.push_back(16 * all.back());
    return all;
  }

  // Rows of other replicas over those of one among idle ones.
  double alone() const { return pool_.phase.plan.replicas() > 1 ? 0 : 1; }

  const ServicePool& pool_;
  const SeatLimits& limits_;
  const PoolRoom& room_;
  const ServingDemand& demand_;
  bool shared_;  // caches, so that they may hold more tokens than they have room for
  TimedPool timed_;
  std::optional<ExpertCourse> course_;
};

}  // namespace

constexpr std::int64_t kNoBound = std::int64_t{1} << 40;  // pages

std::optional<PoolRoom> room_of(const Scenario& scenario, const ServicePhase& phase) {
  try {
    const ServicePool pool = service_pool(scenario, phase);
    // Of the layers that keep most; of those with a window there is no bound.
    const std::int64_t pages = pool.parts.whole > 0 ? pool.pages / pool.parts.whole : kNoBound;
    return PoolRoom{phase, pages * phase.plan.block_tokens,
                    2 * active_parameters(scenario.model, CountedTables::kNone), peak_of(scenario, phase)};
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kRun) throw;
    return std::nullopt;
  }
}

PoolRates rates_by_peak(const PoolRoom& room) {
  const ServicePhase& phase = room.phase;
  const double of_instance = room.peak / room.flops_of_token;
  PoolRates rates{.role = phase.role, .devices = phase.instances * phase.plan.devices()};
  // What keys take is left out: of the ways to count, only that without them is known.
  const auto only_tokens = [](double rate) {
    TokenCounts counts;
    counts.fill(kForeverLong);
    counts[0] = rate;
    return counts;
  };
  if (phase.role != PoolRole::kDecode) {
    rates.prompts_of_instance = only_tokens(of_instance);
    rates.prompts = only_tokens(of_instance * phase.instances);
    rates.first = 1 / of_instance;
  }
  if (phase.role != PoolRole::kPrefill) {
    rates.answers = rates.kept = only_tokens(of_instance * phase.instances);  // guesses take rows, too
    rates.tpot = 1 / of_instance;
  }
  return rates;
}

PoolRates timed_rates(const Scenario& scenario, const ServicePhase& phase, const SeatLimits& limits,
                      const PoolRoom& room, const ServingDemand& demand, double promised_tpot,
                      const StartExecutor& start, StepTimings& timings) {
  const ServicePool pool = service_pool(scenario, phase);
  FullIterations iterations(scenario, pool, limits, room, demand, start, timings);
  PoolRates rates{.role = phase.role, .devices = phase.instances * phase.plan.devices()};
  const auto of_all = [&](TokenCounts counts) {
    for (double& rate : counts) rate *= phase.instances;
    return counts;
  };
  if (phase.role != PoolRole::kDecode) {
    rates.prompts_of_instance = iterations.prompts();
    rates.prompts = of_all(rates.prompts_of_instance);
    rates.first = iterations.shortest_prompt();
  }
  if (phase.role != PoolRole::kPrefill) {
    iterations.set_answers(rates, promised_tpot);
    rates.answers = of_all(rates.answers), rates.kept = of_all(rates.kept);
    rates.tpot = iterations.shortest_answer() / (1.0 + phase.plan.drafts);
  }
  return rates;
}

}  // namespace moebius
