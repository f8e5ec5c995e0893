// How the machines of a service may be split among pools, and which of them does what.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/scenario.h"
#include "workloads/study/search/space_file.h"

namespace moebius {

// A pool of the plan: degrees of parallelism are chosen for each.
struct PoolSeat {
  std::string pointer;  // of the phase, or of the row of `pools`: "/plan/prefill"
  PoolRole role = PoolRole::kBoth;
  std::string pool, expert_pool;  // names; no expert_pool: experts stand beside attention
  int devices = 0, node = 1;      // of attention, and of one of its nodes
  int expert_devices = 0;
};

struct ServingLayout {
  std::string name;                  // "prefill 2 nodes, decode 6 nodes"
  std::vector<Assignment> settings;  // of pools and of what stands apart; none: they are the scenario's own
  std::vector<PoolSeat> seats;

  int devices() const;
};

// The scenario's own layout first. Where its pools are alike, it names none in `sla` and it has neither rows
// of `pools`, nor one phase alone, nor encoders apart, so do, on as many nodes together (with `fewer`, also
// on half as many, a quarter, ...): one pool for both phases; prefill and decode apart; attention and experts
// apart, of models that have some. Pools are split node by node, beyond kMostSplits at as many even steps.
// `given` may restrict them: /plan/separation, and /cluster/pools/0/nodes for the first pool.
std::vector<ServingLayout> serving_layouts(const Document& base, const Scenario& scenario,
                                           const SpaceFile& given, bool fewer);
inline constexpr int kMostSplits = 16;

// Whether a key of a space file is about layouts.
bool is_of_layout(const std::string& pointer);

}  // namespace moebius
