#include "workloads/service/engine.h"

#include <algorithm>

#include "workloads/job.h"
#include "workloads/service/rules.h"

namespace moebius {

std::vector<std::int32_t> captured_sizes(int step, int doubled_from, int most) {
  std::vector<std::int32_t> sizes;
  for (const int size : {1, 2, 4})
    if (size < std::min(step, most)) sizes.push_back(size);
  const auto next = [&](int size) { return size + (doubled_from > 0 && size >= doubled_from ? size : step); };
  for (int size = step; size < most; size = next(size)) sizes.push_back(size);
  sizes.push_back(most);
  return sizes;
}

namespace {

// Without padding nobody adds the most that may run to the sizes that are captured (TensorRT-LLM,
// _torch/pyexecutor/model_engine.py: _filter_cuda_graph_batch_sizes).
void set_graphs(const EngineKeys& engine, int captured, int most, InstanceRules& rules) {
  rules.fills_graphs = engine.captured_padding;
  const bool ends = !rules.fills_graphs && captured != kAllCaptured;
  rules.captured = captured_sizes(engine.slots ? most : engine.captured_step, engine.captured_doubled_from,
                                  ends ? captured : std::min(most, captured));
  std::erase_if(rules.captured, [&](std::int32_t size) { return size > most; });
}

}  // namespace

// Slots belong to sequences that decode: a pool that hands over keeps a prompt no longer than it must.
void set_engine_rules(const ServicePlan& service, const ServicePool& pool, InstanceRules& rules) {
  const EngineKeys& engine = service.engine;
  const ServicePhase& phase = pool.phase;
  const int most = of_lane(phase.plan.max_batch, phase.plan);
  rules.replica.padded = engine.padded;
  rules.replica.receive_every = engine.receive_every;
  rules.replica.decided_ahead = engine.decided_ahead;
  rules.replica.gather_share = engine.gather_share;
  rules.replica.gather_iterations = engine.gather_iterations;
  rules.await_prompts = engine.await_prompts;
  rules.gather_prompts = engine.gather_prompts;
  if (phase.role == PoolRole::kPrefill) return;
  rules.replica.slot_tokens = engine.slot_tokens;
  rules.replica.host_pages = static_cast<std::int64_t>(engine.swap_space / pool.page_bytes) / lanes_of(pool);
  const Accelerator& chip = pool.job->scenario.cluster->pools.front().accelerator;
  rules.swap_seconds = pool.page_bytes * pool.parts.all() / chip.host_rate / phase.plan.block_tokens;
  if (engine.launch == LaunchMode::kGraph) set_graphs(engine, phase.plan.captured, most, rules);
  rules.choose_experts = pool.model.experts.routed > 0;
}

}  // namespace moebius
