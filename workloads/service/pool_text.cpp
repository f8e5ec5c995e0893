#include "workloads/service/pool_text.h"

#include <fmt/format.h>

#include "workloads/job.h"
#include "workloads/report/number_text.h"
#include "workloads/serving/serving.h"

namespace moebius {
namespace {

std::string_view does(PoolRole role) {
  switch (role) {
    case PoolRole::kPrefill:
      return "prompts";
    case PoolRole::kDecode:
      return "tokens";
    case PoolRole::kBoth:
      break;
  }
  return "prompts and tokens";
}

std::string degrees(const ServingPlan& plan) {
  std::string text = fmt::format("dp {}, tp {}", plan.replicas(), plan.tp);
  if (plan.cp > 1) text += fmt::format(", cp {}", plan.cp);
  if (plan.pp > 1) text += fmt::format(", pp {}", plan.pp);
  if (plan.ranks_of_route() > 1) text += ", " + expert_degrees(plan);
  return text;
}

// Bytes of a device, and what is to be said of them.
std::string row(std::string_view name, Bytes bytes, Bytes capacity, const std::string& remark = "") {
  const double share = bytes / capacity;
  return fmt::format("    {:<26} {:>10} {:>6.1f}%  {}{}{}\n", name, to_text(bytes), 100 * share,
                     bar(std::min(share, 1.0)), remark.empty() ? "" : "  ", remark);
}

std::string pages_text(const ServicePool& pool) {
  const ServingPlan& plan = pool.phase.plan;
  if (pool.parts.windowed > 0)
    return fmt::format(
        "{} pages of {} tokens and one of {} parts of the layers: a sequence has {} for each {} tokens, "
        "and up to {} more for layers with a window",
        grouped(pool.pages), plan.block_tokens, pool.parts.all(), pool.parts.whole, plan.block_tokens,
        grouped(pool.parts.windowed * pool.parts.window));
  return fmt::format("{} pages of {} tokens: {} tokens a replica", grouped(pool.pages), plan.block_tokens,
                     grouped(pool.pages * plan.block_tokens));
}

}  // namespace

std::string describe(const ServicePool& pool) {
  const ServingPlan& plan = pool.phase.plan;
  const Pool& devices = pool.job->scenario.cluster->pools.front();
  const Bytes capacity = devices.accelerator.memory;
  const int instances = pool.phase.instances;
  std::string text = fmt::format(
      "pool {}, {}: {} instance{} of {} device{} ({}), up to {} sequence{} a replica\n", devices.name,
      does(pool.phase.role), instances, instances == 1 ? "" : "s", plan.devices(),
      plan.devices() == 1 ? "" : "s", degrees(plan), grouped(plan.max_batch), plan.max_batch == 1 ? "" : "s");
  text += row(pool.drafter ? "weights, with those of guesses" : "weights", pool.weights, capacity);
  if (pool.runtime.value > 0) text += row("a process without them", pool.runtime, capacity);
  text += row("the largest iteration", pool.work, capacity,
              fmt::format("of {} tokens", grouped(plan.token_budget)));
  Bytes cache{};
  if (pool.page_bytes.value > 0) {
    cache = pool.page_bytes * static_cast<double>(pool.pages);
    text += row("cache", cache, capacity, pages_text(pool));
  }
  const Bytes states = pool.state_bytes * pool.states;
  if (pool.states > 0)
    text += row("states of delta networks", states, capacity, fmt::format("of {} sequences", pool.states));
  text += row("left", capacity - pool.runtime - pool.weights - pool.work - cache - states, capacity,
              fmt::format("of {}", to_text(capacity)));
  if (plan.experts_apart())
    text += fmt::format("    experts apart: {} of weights on each of {} devices\n",
                        to_text(pool.expert_weights), plan.apart.ranks);
  const std::int64_t idle = devices.devices() - std::int64_t{instances} * (plan.devices() - plan.apart.ranks);
  if (idle > 0)
    text += fmt::format("warning: {} of the {} devices of pool {} serve nothing and are not priced\n",
                        grouped(idle), grouped(devices.devices()), devices.name);
  return text;
}

}  // namespace moebius
