#include "workloads/study/search/serving_bounds.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "models/model.h"

namespace moebius {
namespace {

// Seconds at least, by the way to count that says most.
double longest(const TokenCounts& tokens, const TokenCounts& rates) {
  double seconds = 0;
  for (std::size_t w = 0; w < tokens.size(); ++w)
    if (rates[w] > 0) seconds = std::max(seconds, tokens[w] / rates[w]);
  return seconds;
}

void add(TokenCounts& sum, const TokenCounts& more) {
  for (std::size_t w = 0; w < sum.size(); ++w) sum[w] += more[w];
}

// All pools together.
struct Rates {
  TokenCounts prompts{}, answers{}, kept{};
  TokenCounts prompts_of_instance{};                 // of the best
  double tpot = kForeverLong, first = kForeverLong;  // likewise
  bool shares_time = false;                          // one pool does both, in iterations of their own

  explicit Rates(const std::vector<PoolRates>& pools) {
    for (const PoolRates& pool : pools) {
      add(prompts, pool.prompts), add(answers, pool.answers), add(kept, pool.kept);
      for (std::size_t w = 0; w < prompts.size(); ++w)
        prompts_of_instance[w] = std::max(prompts_of_instance[w], pool.prompts_of_instance[w]);
      if (pool.role != PoolRole::kDecode) first = std::min(first, pool.first);
      if (pool.role != PoolRole::kPrefill) tpot = std::min(tpot, pool.tpot);
    }
    if (first == kForeverLong) first = 0;  // prompts are there when requests come
    shares_time = pools.size() == 1 && pools.front().role == PoolRole::kBoth && !pools.front().mixed;
  }

  double of_both(const TokenCounts& prompt_tokens, const TokenCounts& answer_tokens, bool in_time) const {
    const double a = longest(prompt_tokens, prompts), b = longest(answer_tokens, in_time ? kept : answers);
    return shares_time ? a + b : std::max(a, b);
  }
};

// Requests that may be given what they are promised, by what they ask for at least: sums of the smallest.
struct Keepable {
  std::vector<TokenCounts> prompts, answers;  // of the first 1, 2, ...
  double outputs = 0;                         // of all requests of classes that have some of these
  std::size_t count() const { return prompts.size(); }
};

bool may_keep(const DemandedRequest& request, const ServiceGoal& goal, const Rates& rates) {
  const double first = std::max(rates.first, longest(request.prompt_counts(), rates.prompts_of_instance));
  if (goal.ttft.ns > 0 && first > goal.ttft.seconds()) return false;
  return goal.tpot.ns == 0 || request.output < 2 || rates.tpot <= goal.tpot.seconds();
}

// Of those that are kept, in the order of each way to count.
template <class Count>
std::vector<TokenCounts> sums(const ServingDemand& demand, const std::vector<bool>& kept, std::size_t count,
                              const ServingDemand::Orders& orders, Count counts) {
  std::vector<TokenCounts> all(count);
  for (std::size_t w = 0; w < orders.size(); ++w) {
    double sum = 0;
    std::size_t at = 0;
    for (const std::int32_t number : orders[w])
      if (kept[number]) all[at++][w] = sum += counts(demand.requests[number])[w];
  }
  return all;
}

Keepable keepable(const Scenario& scenario, const ServingDemand& demand, const Rates& rates) {
  Keepable all;
  std::vector<double> outputs(scenario.service.classes.size());
  std::vector<bool> some(outputs.size()), kept(demand.requests.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const DemandedRequest& request = demand.requests[i];
    outputs[request.service_class] += static_cast<double>(request.output);
    kept[i] = may_keep(request, scenario.service.classes[request.service_class].goal, rates);
    if (!kept[i]) continue;
    some[request.service_class] = true;
    ++count;
  }
  for (std::size_t i = 0; i < some.size(); ++i) all.outputs += some[i] ? outputs[i] : 0;
  all.prompts = sums(demand, kept, count, demand.by_prompt, std::mem_fn(&DemandedRequest::prompt_counts));
  all.answers = sums(demand, kept, count, demand.by_answer, std::mem_fn(&DemandedRequest::answer_counts));
  return all;
}

// What is done in any case: requests that caches have room for, where none is turned away.
struct Certain {
  double work = 0;    // seconds of the pools
  double span = 0;    // from the first arrival to the last token
  double tokens = 0;  // of prompts and of answers, each of which passes the model
};

Certain certain_of(const Scenario& scenario, const ServingDemand& demand, const Rates& rates,
                   std::int64_t cache_tokens) {
  if (scenario.service.admission.policy != AdmissionPolicy::kNone) return {};
  const std::int64_t spare = 2 * scenario.serving.block_tokens + scenario.service.speculation.drafts;
  TokenCounts prompts{}, answers{};
  double last = 0;
  for (const DemandedRequest& request : demand.requests) {
    if (request.input + request.output + spare > cache_tokens) continue;
    add(prompts, request.prompt_counts()), add(answers, request.answer_counts());
    if (demand.open) last = request.arrival - demand.requests.front().arrival;
  }
  const double work = rates.of_both(prompts, answers, false);
  const double tokens = (rates.prompts[0] > 0 ? prompts[0] : 0) + (rates.answers[0] > 0 ? answers[0] : 0);
  return {work, std::max(work, last), tokens};
}

// The longest that a promise lets a request wait for its first and for its last token; infinity where some
// class is promised nothing.
struct Patience {
  double first = 0, last = 0;

  Patience(const Scenario& scenario, const ServingDemand& demand) {
    for (const RequestClass& of : scenario.service.classes)
      first = std::max(first, of.goal.ttft.ns > 0 ? of.goal.ttft.seconds() : kForeverLong);
    const double tpot = promised_tpot(scenario);
    last = tpot > 0 ? first + tpot * static_cast<double>(demand.most_output) : kForeverLong;
  }
};

// Whether so many can be done when requests come for `seconds`.
bool in_time(const Keepable& all, std::size_t count, const Rates& rates, const Patience& patience,
             double seconds) {
  const TokenCounts &prompts = all.prompts[count - 1], &answers = all.answers[count - 1];
  return longest(prompts, rates.prompts) <= seconds + patience.first &&
         rates.of_both(prompts, answers, true) <= seconds + patience.last;
}

// Requests that come at times of their own: how many of them.
double most_in_time(const Keepable& all, const Rates& rates, const Patience& patience, double seconds) {
  std::size_t low = 0, high = all.count();  // what holds of some holds of fewer
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    if (in_time(all, middle, rates, patience, seconds))
      low = middle;
    else
      high = middle - 1;
  }
  return static_cast<double>(low);
}

// Times faster than the traffic says, so that a share of the requests can still be done in time.
double most_times_faster(const Keepable& all, const Rates& rates, const Patience& patience,
                         const ServingDemand& demand, double attainment) {
  const auto needed = static_cast<std::size_t>(
      std::ceil(attainment * static_cast<double>(demand.requests.size()) * (1 - 1e-12)));
  if (needed > all.count()) return 0;
  if (needed == 0) return kForeverLong;
  const TokenCounts &prompts = all.prompts[needed - 1], &answers = all.answers[needed - 1];
  const double left = std::max(longest(prompts, rates.prompts) - patience.first,
                               rates.of_both(prompts, answers, true) - patience.last);
  return left > 0 ? demand.last / left : kForeverLong;
}

// Of requests that come when others are answered, or are there at once: the run lasts as long as all work
// takes, and longer than that of those that are counted.
double most_a_second(const Keepable& all, const Rates& rates, double work) {
  double best = 0;
  for (std::size_t i = 0; i < all.count(); ++i)
    best = std::max(best, static_cast<double>(i + 1) /
                              std::max(work, rates.of_both(all.prompts[i], all.answers[i], true)));
  return best;
}

double devices_of(const std::vector<PoolRates>& pools) {
  double sum = 0;
  for (const PoolRates& pool : pools) sum += pool.devices;
  return sum;
}

double usd_per_second(const Scenario& scenario, const std::vector<PoolRates>& pools) {
  double least = kForeverLong;
  for (const Pool& pool : scenario.cluster->pools) least = std::min(least, pool.accelerator.price.value);
  return least * devices_of(pools) / 3600;
}

// Nodes take something all the time, and so do devices of which it is known; the others while they work.
double joules(const Scenario& scenario, const std::vector<EnergyFloor>& floors,
              const std::vector<PoolRates>& pools, const Certain& certain) {
  double busy = kForeverLong, idle = kForeverLong, of_flop = kForeverLong;
  for (std::size_t i = 0; i < floors.size(); ++i) {
    const Pool& pool = scenario.cluster->pools[i];
    busy = std::min(busy, floors[i].idle_watts ? 0 : pool.accelerator.power.value);
    idle = std::min(
        idle, pool.node.overhead_power.value / pool.node.accelerators + floors[i].idle_watts.value_or(0));
    of_flop = std::min(of_flop, floors[i].joule_per_flop);
  }
  const double working = pools.size() == 1 ? devices_of(pools) * certain.work : 0;
  const double flops = 2 * active_parameters(scenario.model, CountedTables::kNone) * certain.tokens;
  return devices_of(pools) * idle * certain.span + busy * working + of_flop * flops;
}

}  // namespace

double promised_tpot(const Scenario& scenario) {
  double most = 0;
  for (const RequestClass& of : scenario.service.classes) {
    if (of.goal.tpot.ns == 0) return 0;
    most = std::max(most, of.goal.tpot.seconds());
  }
  return most;
}

std::vector<EnergyFloor> ServingBounds::floors_of(const Scenario& scenario) const {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = floors_.try_emplace(&scenario);
  if (is_new) known->second = energy_floors(scenario, data_);
  return known->second;
}

ServingBound ServingBounds::of(const Scenario& scenario, const ServingDemand& demand,
                               const std::vector<PoolRates>& pools, std::int64_t cache_tokens) const {
  const Rates rates(pools);
  const Keepable all = keepable(scenario, demand, rates);
  const Certain certain = certain_of(scenario, demand, rates, cache_tokens);
  const Patience patience(scenario, demand);
  double value = 0;
  if (attainment_ > 0) {
    value = most_times_faster(all, rates, patience, demand, attainment_) * demand.rate();
  } else {
    switch (score_.goal()) {
      case SearchGoal::kStepTime:  // of training
      case SearchGoal::kGoodput:
        value = demand.open ? most_in_time(all, rates, patience, demand.last) * demand.rate() /
                                  static_cast<double>(demand.requests.size())
                            : most_a_second(all, rates, certain.work);
        break;
      case SearchGoal::kThroughput:
        value = static_cast<double>(demand.outputs) / certain.span;
        break;
      case SearchGoal::kTokensPerDollar:
        value = all.outputs / (usd_per_second(scenario, pools) * certain.span);
        break;
      case SearchGoal::kTokensPerJoule:
        value = all.outputs / joules(scenario, floors_of(scenario), pools, certain);
        break;
    }
  }
  return {ServingScore::score_of(value), certain.work};
}

}  // namespace moebius
