#include "workloads/study/search/pool_rates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "hw/error.h"
#include "models/model.h"
#include "workloads/cost/roofline.h"
#include "workloads/timed_pool.h"

namespace moebius {
namespace {

constexpr double kForeverLong = std::numeric_limits<double>::infinity();

double peak_of(const Accelerator& chip, const ServingPlan& plan) {
  const double dense = chip.peak_of(executed_dtype(chip, plan.gemm)).value;
  const double experts = chip.peak_of(executed_dtype(chip, plan.expert_gemm.value_or(plan.gemm))).value;
  return std::max(dense, experts);
}

double peak_of(const Scenario& scenario, const ServicePhase& phase) {
  const std::vector<Pool>& pools = scenario.cluster->pools;
  double peak = peak_of(pools[phase.pool].accelerator, phase.plan) * phase.plan.dp * phase.plan.tp;
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

  // Tokens of prompts a second. A prompt that is not cut, or longer than the budget, has an iteration alone.
  double prompts() {
    const std::int64_t most = std::max(limits_.token_budget, pool_.phase.chunked ? 0 : demand_.most_input);
    double best = 0;
    for (const std::int64_t rows : edges(std::max<std::int64_t>(1, most / 8), most, 4))
      best = std::max(best, static_cast<double>(rows) / shortest_with(rows, 1));
    return best * pool_.phase.plan.dp;
  }

  // Of one replica among idle ones.
  double alone() const { return pool_.phase.plan.dp > 1 ? 0 : 1; }

  // Seconds; keys at the edges around those that a prompt's tokens may have on average.
  double shortest_with(std::int64_t rows, double others) {
    double least = kForeverLong;
    const std::int64_t from = edge_below(std::max<std::int64_t>(1, (demand_.least_input + 1) / 2));
    for (std::int64_t keys = from;; keys *= 16) {
      least = std::min(least, timed_.surface().at({rows, keys, 0, 0, others}));
      if (keys >= demand_.most_input) return least;
    }
  }

  double decoding(std::int64_t sequences, double others) {
    return timed_.surface().at({0, 0, sequences, demand_.least_input + 1, others});
  }

  // Tokens of answers a second, all and those of requests that are given `promised`.
  void set_decoding(PoolRates& rates, double promised) {
    const double tokens = pool_.phase.plan.dp * (1.0 + pool_.phase.plan.drafts);
    std::int64_t most = limits_.max_batch;
    if (!shared_ && demand_.least_input > 0)
      most = std::clamp<std::int64_t>(room_.cache_tokens / demand_.least_input, 1, most);
    const std::vector<std::int64_t> sequences = edges(1, most, 2);
    std::vector<double> seconds;
    for (const std::int64_t count : sequences) seconds.push_back(decoding(count, 1));
    rates.decode_tokens = tokens * most_a_second(sequences, seconds, 0, 0);
    rates.kept_tokens = rates.decode_tokens;
    rates.tpot = decoding(1, alone()) / (1.0 + pool_.phase.plan.drafts);
    if (promised <= 0) return;
    const double g = promised * (1.0 + pool_.phase.plan.drafts);
    for (double u = 1 / (64 * g); u < 64 / g; u *= 1.5)
      rates.kept_tokens =
          std::min(rates.kept_tokens, tokens * std::max(0.0, most_a_second(sequences, seconds, u, g)));
  }

 private:
  // Between edges seconds are linear: sequences over seconds is most at one of them.
  static double most_a_second(const std::vector<std::int64_t>& sequences, const std::vector<double>& seconds,
                              double u, double g) {
    double best = -kForeverLong, before = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const double rate = static_cast<double>(sequences[i]) / seconds[i];
      const double fewest = i == 0 ? 0.0 : static_cast<double>(sequences[i - 1]);
      best = std::max(best, std::max(before, rate) * (1 + u * g) - u * fewest);
      before = rate;
    }
    return best;
  }

  const ServicePool& pool_;
  const SeatLimits& limits_;
  const PoolRoom& room_;
  const ServingDemand& demand_;
  bool shared_;  // caches, so that they may hold more tokens than they have room for
  TimedPool timed_;
  std::optional<ExpertCourse> course_;
};

}  // namespace

std::optional<PoolRoom> room_of(const Scenario& scenario, const ServicePhase& phase) {
  try {
    const ServicePool pool = service_pool(scenario, phase);
    return PoolRoom{phase, pool.pages * phase.plan.block_tokens,
                    2 * active_parameters(scenario.model, CountedTables::kNone), peak_of(scenario, phase)};
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kRun) throw;
    return std::nullopt;
  }
}

PoolRates rates_by_peak(const PoolRoom& room) {
  const ServicePhase& phase = room.phase;
  const double of_instance = room.peak / room.flops_of_token;
  PoolRates rates{.role = phase.role, .devices = phase.instances * phase.plan.ranks()};
  rates.mixed = phase.batching == BatchPolicy::kMixed;
  if (phase.role != PoolRole::kDecode) {
    rates.prompt_tokens_of_instance = of_instance;
    rates.prompt_tokens = of_instance * phase.instances;
    rates.first = 1 / of_instance;
  }
  if (phase.role != PoolRole::kPrefill) {
    rates.decode_tokens = rates.kept_tokens = of_instance * phase.instances;  // guesses take rows, too
    rates.tpot = 1 / of_instance;
  }
  return rates;
}

PoolRates timed_rates(const Scenario& scenario, const ServicePhase& phase, const SeatLimits& limits,
                      const PoolRoom& room, const ServingDemand& demand, double promised_tpot,
                      const StartExecutor& start, StepTimings& timings) {
  const ServicePool pool = service_pool(scenario, phase);
  FullIterations iterations(scenario, pool, limits, room, demand, start, timings);
  PoolRates rates{.role = phase.role, .devices = phase.instances * phase.plan.ranks()};
  rates.mixed = limits.mixed;
  if (phase.role != PoolRole::kDecode) {
    rates.prompt_tokens_of_instance = iterations.prompts();
    rates.prompt_tokens = rates.prompt_tokens_of_instance * phase.instances;
    rates.first = iterations.shortest_with(1, iterations.alone());
  }
  if (phase.role != PoolRole::kPrefill) {
    iterations.set_decoding(rates, promised_tpot);
    rates.decode_tokens *= phase.instances, rates.kept_tokens *= phase.instances;
  }
  return rates;
}

}  // namespace moebius
