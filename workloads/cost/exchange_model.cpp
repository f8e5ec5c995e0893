#include "workloads/cost/exchange_model.h"

#include <algorithm>
#include <cmath>

namespace moebius {
namespace {

double time_at(double bytes, double rate) {
  return rate > 0 ? bytes / rate : 0;
}

// What the wire lets through, and no more than the kernel gets out of it.
double rate_of(double share, double line, double achieved) {
  if (share <= 0 || line <= 0) return achieved;
  return achieved > 0 ? std::min(achieved, share * line) : share * line;
}

double latency_of(const ExchangeKernel& kernel, const ExchangeLoad& load, const ExchangeMachine& machine) {
  double seconds = kernel.fixed + load.row_bytes * kernel.fixed_row + load.experts * kernel.expert;
  if (load.nodes == 1) return seconds;
  if (kernel.family == ExchangeFamily::kThroughput)  // sizes and a barrier, a round trip each
    return seconds + (load.nodes - 1) * 4 * machine.latency;
  const double remote = 1 - 1.0 / load.nodes;
  return seconds + machine.latency + remote * load.experts * kernel.remote_expert;
}

// Of the slowest channel, in whole tokens.
double tokens_of_core(const ExchangeKernel& kernel, double tokens, int cores) {
  const double share = tokens / cores;
  return kernel.family == ExchangeFamily::kLowLatency ? std::ceil(share) : share;
}

// Rows that a core reads while those of its number on all other ranks read of the same source.
double turns_of(const ExchangeKernel& kernel, const ExchangeLoad& load, const ExchangeMachine& machine) {
  if (!kernel.in_turn || machine.link_line <= 0 || load.experts == 0) return 0;
  const int cores = std::max(1, machine.general);
  const int pairs = (load.experts + cores - 1) / cores;  // as many of one rank as there are experts
  const double rows = pairs * load.copies / load.experts;
  return rows * load.ranks * load.row_bytes / machine.link_line;
}

ExchangeMachine machine_of_die(ExchangeMachine machine, int dies) {
  machine.cores /= dies;
  machine.general /= dies;
  for (double* rate : {&machine.link_line, &machine.link_rate, &machine.nic_line, &machine.nic_rate})
    *rate /= dies;
  return machine;
}

// A group of no experts of a token: of E experts, `active` drawn without repetition miss `members`.
double miss(double experts, int active, double members) {
  double chance = 1;
  for (int i = 0; i < active; ++i) chance *= std::max(0.0, (experts - members - i) / (experts - i));
  return chance;
}

}  // namespace

int exchange_cores(const ExchangeKernel& kernel, const ExchangeLoad& load, const ExchangeMachine& machine) {
  if (kernel.family == ExchangeFamily::kThroughput)
    return std::max(2, machine.held > 0 ? machine.held : kThroughputCores);
  const int experts = std::max(1, load.experts), cores = std::max(1, machine.cores);
  const int each = (experts + cores - 1) / cores;
  return (experts + each - 1) / each;
}

ExchangeTime exchange_time(const ExchangeKernel& kernel, const ExchangeLoad& load,
                           const ExchangeMachine& chip) {
  const ExchangeMachine machine = machine_of_die(chip, kernel.dies);
  const int cores = exchange_cores(kernel, load, machine);
  const double row = load.row_bytes;
  const double channel = std::ceil(load.tokens / (cores / 2.0));
  const double filling = std::min(channel, kernel.fill_tokens) * (kernel.fill + row * kernel.fill_row);
  const double copying = tokens_of_core(kernel, load.tokens, cores) * kernel.token +
                         load.copies * (kernel.copy + time_at(row, kernel.copy_rate)) / cores;
  const double summing = load.tokens * (kernel.sum + time_at(row, kernel.sum_rate)) / cores;
  const double messages =
      load.remote_ranks * kernel.message + load.linked * kernel.crossing + turns_of(kernel, load, machine);
  const double link =
      time_at(load.inside * row, rate_of(kernel.link_share, machine.link_line, machine.link_rate));
  const double nic =
      time_at(load.across * row, rate_of(kernel.nic_share, machine.nic_line, machine.nic_rate));
  const double by_cores = std::max({copying, summing, messages, link});
  ExchangeTime time{latency_of(kernel, load, machine) + filling, std::max(by_cores, nic)};
  if (kernel.family == ExchangeFamily::kLowLatency) time.held = time.latency + by_cores;
  return time;
}

double exchange_memory(const ExchangeKernel& kernel, const ExchangeLoad& load) {
  constexpr int kOfToken = 1, kOfNicRow = 4, kOfRankRow = 3, kOfRowByItself = 6;
  if (goes_to_experts(kernel)) return load.copies * kOfRowByItself * load.row_bytes;
  const double nodes = load.nodes > 1 ? load.across * load.nodes / (load.nodes - 1) : 0;  // its own too
  return (load.tokens * kOfToken + load.across * kOfNicRow + (load.copies - nodes) * kOfRankRow) *
         load.row_bytes;
}

ExchangeLoad load_of_die(ExchangeLoad load, int dies) {
  const double kept = (load.copies - load.remote_ranks) * (dies - 1) / dies;  // for another die of the chip
  load.linked /= dies;
  load.remote_ranks = (load.remote_ranks + kept) / dies;
  load.tokens /= dies;
  load.copies /= dies;
  load.inside /= dies;
  load.across /= dies;
  load.ranks *= dies;
  return load;
}

ExchangeLoad even_load(const EvenExchange& exchange, bool to_experts) {
  const int ranks = exchange.ranks, nodes = exchange.nodes;
  ExchangeLoad load{.ranks = ranks, .tokens = exchange.tokens, .nodes = nodes, .experts = exchange.experts};
  const double own = static_cast<double>(ranks) / nodes;
  if (to_experts) {
    const double rows = exchange.tokens * exchange.active;
    load.copies = rows;
    load.inside = rows * (own - 1) / ranks;
    load.across = rows * (ranks - own) / ranks;
    load.remote_ranks = load.inside + load.across;
    load.linked = rows * (ranks - exchange.dies) / ranks;
    return load;
  }
  // Nodes are chosen first, then experts of these.
  const int chosen = exchange.nodes_per_token > 0 ? std::min(exchange.nodes_per_token, nodes) : nodes;
  const double experts = static_cast<double>(exchange.experts) * chosen / nodes;
  const double per_rank = static_cast<double>(exchange.experts) / ranks;
  const double distinct_nodes =  // no more than experts, where nodes hold less than one
      std::min<double>(exchange.active, chosen * (1 - miss(experts, exchange.active, experts / chosen)));
  const double distinct_ranks = chosen * own * (1 - miss(experts, exchange.active, per_rank));
  load.copies = exchange.tokens * (distinct_ranks + (nodes > 1 ? distinct_nodes : 0));
  load.inside = exchange.tokens * distinct_ranks * (own - 1) / own;
  load.across = exchange.tokens * distinct_nodes * (nodes - 1) / nodes;
  load.remote_ranks = exchange.tokens * distinct_ranks * (ranks - 1) / ranks;
  return load;
}

}  // namespace moebius
