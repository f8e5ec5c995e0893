#include "workloads/study/search/serving_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moebius {
namespace {

constexpr double kForeverLong = std::numeric_limits<double>::infinity();

// All pools together.
struct Rates {
  double prompts = 0, decoding = 0, kept = 0;
  double prompts_of_instance = 0, tpot = kForeverLong, first = kForeverLong;  // of the best
  bool shares_time = false;  // one pool does both, in iterations of their own

  explicit Rates(const std::vector<PoolRates>& pools) {
    for (const PoolRates& pool : pools) {
      prompts += pool.prompt_tokens, decoding += pool.decode_tokens, kept += pool.kept_tokens;
      prompts_of_instance = std::max(prompts_of_instance, pool.prompt_tokens_of_instance);
      if (pool.prompt_tokens > 0) first = std::min(first, pool.first);
      if (pool.decode_tokens > 0) tpot = std::min(tpot, pool.tpot);
    }
    if (prompts == 0) first = 0;  // they are there when requests come
    shares_time = pools.size() == 1 && pools.front().role == PoolRole::kBoth && !pools.front().mixed;
  }

  static double seconds(double tokens, double rate) { return rate > 0 ? tokens / rate : 0; }
  double of_prompts(double tokens) const { return seconds(tokens, prompts); }
  double of_answers(double tokens, bool in_time) const { return seconds(tokens, in_time ? kept : decoding); }
  double of_both(double prompt_tokens, double answer_tokens, bool in_time) const {
    const double a = of_prompts(prompt_tokens), b = of_answers(answer_tokens, in_time);
    return shares_time ? a + b : std::max(a, b);
  }
};

// Requests that may be given what they are promised, by what they ask for at least: sums of the smallest.
struct Keepable {
  std::vector<double> prompts, answers;  // tokens of the first 1, 2, ...
  double outputs = 0;                    // of all requests of classes that have some of these
  std::size_t count() const { return prompts.size(); }
};

bool may_keep(const DemandedRequest& request, const ServiceGoal& goal, const Rates& rates) {
  const double first = std::max(rates.first, Rates::seconds(request.fresh, rates.prompts_of_instance));
  if (goal.ttft.ns > 0 && first > goal.ttft.seconds()) return false;
  return goal.tpot.ns == 0 || request.output < 2 || rates.tpot <= goal.tpot.seconds();
}

void add_up(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  for (std::size_t i = 1; i < values.size(); ++i) values[i] += values[i - 1];
}

Keepable keepable(const Scenario& scenario, const ServingDemand& demand, const Rates& rates) {
  Keepable all;
  std::vector<double> outputs(scenario.service.classes.size());
  std::vector<bool> some(outputs.size());
  for (const DemandedRequest& request : demand.requests) {
    outputs[request.service_class] += static_cast<double>(request.output);
    if (!may_keep(request, scenario.service.classes[request.service_class].goal, rates)) continue;
    all.prompts.push_back(static_cast<double>(request.fresh));
    all.answers.push_back(static_cast<double>(request.output - 1));
    some[request.service_class] = true;
  }
  for (std::size_t i = 0; i < some.size(); ++i) all.outputs += some[i] ? outputs[i] : 0;
  add_up(all.prompts), add_up(all.answers);
  return all;
}

// What is done in any case: requests that caches have room for, where none is turned away.
struct Certain {
  double work = 0;  // seconds of the pools
  double span = 0;  // from the first arrival to the last token
};

Certain certain_of(const Scenario& scenario, const ServingDemand& demand, const Rates& rates,
                   std::int64_t cache_tokens) {
  if (scenario.service.admission.policy != AdmissionPolicy::kNone) return {};
  const std::int64_t spare = 2 * scenario.serving.block_tokens + scenario.service.speculation.drafts;
  double prompts = 0, answers = 0, last = 0;
  for (const DemandedRequest& request : demand.requests) {
    if (request.input + request.output + spare > cache_tokens) continue;
    prompts += static_cast<double>(request.fresh), answers += static_cast<double>(request.output - 1);
    if (demand.open) last = request.arrival - demand.requests.front().arrival;
  }
  const double work = rates.of_both(prompts, answers, false);
  return {work, std::max(work, last)};
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
  const double prompts = all.prompts[count - 1], answers = all.answers[count - 1];
  return rates.of_prompts(prompts) <= seconds + patience.first &&
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
  const double prompts = all.prompts[needed - 1], answers = all.answers[needed - 1];
  const double left = std::max(rates.of_prompts(prompts) - patience.first,
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

// Nodes take something all the time; devices while they work.
double joules(const Scenario& scenario, const std::vector<PoolRates>& pools, double seconds, double work) {
  double busy = kForeverLong, idle = kForeverLong;
  for (const Pool& pool : scenario.cluster->pools) {
    busy = std::min(busy, pool.accelerator.power.value);
    idle = std::min(idle, pool.node.overhead_power.value / pool.node.accelerators);
  }
  const double working = pools.size() == 1 ? devices_of(pools) * work : 0;
  return devices_of(pools) * idle * seconds + busy * working;
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
        value = all.outputs / joules(scenario, pools, certain.span, certain.work);
        break;
    }
  }
  return {ServingScore::score_of(value), certain.work};
}

}  // namespace moebius
