#include "workloads/service_engine.h"

#include <algorithm>

namespace moebius {

std::vector<std::int32_t> captured_sizes(int step, int most) {
  std::vector<std::int32_t> sizes;
  for (const int size : {1, 2, 4})
    if (size < std::min(step, most)) sizes.push_back(size);
  for (int size = step; size < most; size += step) sizes.push_back(size);
  sizes.push_back(most);
  return sizes;
}

// Slots belong to sequences that decode: a pool that hands over keeps a prompt no longer than it must.
void set_engine_rules(const ServicePlan& service, const ServicePhase& phase, InstanceRules& rules) {
  const EngineKeys& engine = service.engine;
  const int most = phase.plan.max_batch;
  rules.replica.padded = engine.padded;
  if (phase.role == PoolRole::kPrefill) return;
  rules.replica.slot_tokens = engine.slot_tokens;
  if (engine.launch == LaunchMode::kGraph)
    rules.captured = captured_sizes(engine.slots ? most : engine.captured_step, most);
}

}  // namespace moebius
