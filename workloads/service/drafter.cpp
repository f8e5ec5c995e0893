#include "workloads/service/drafter.h"

namespace moebius {

Drafter::Drafter(const ServicePool& pool, const StartExecutor& start,
                 const std::shared_ptr<RouteCache>& balanced)
    : drafts_(pool.phase.plan.drafts),
      recorder_(pool.drafter->layout(), {.detail = Detail::kNone}),
      engine_(start(*pool.drafter, pool.drafter->layout(), recorder_)),
      served_{.model = pool.drafter->scenario.model,
              .plan = pool.drafter->scenario.serving,
              .workload = pool.drafter->scenario.served,
              .ranks_per_node = pool.drafter->scenario.cluster->pools.front().node.accelerators},
      timer_(served_, pool.drafter->layout(), {*engine_.executor, engine_.clocks}, recorder_,
             pool.drafter->scenario.model.id == module_of(pool.job->scenario.model).id, balanced) {}

StepTime Drafter::time(const StepPoint& point) {
  const double seconds = timer_.seconds(point);
  StepTime first(seconds, timer_.busy());
  if (point.decode_sequences == 0 || drafts_ < 2) return first;
  const StepPoint further{.decode_sequences = point.decode_sequences,
                          .decode_keys = point.decode_keys,
                          .others = point.others,
                          .fillers = point.fillers,
                          .eager = point.eager};
  const double each = timer_.seconds(further, {.drafts = 0});
  first.add({each, timer_.busy()}, drafts_ - 1);
  return first;
}

Model module_of(const Model& model) {
  Model module = model;
  module.id += "'s module that guesses";
  module.first_dense = model.is_moe_layer(model.layers - 1) ? 0 : 1;
  module.layers = 1;
  module.moe_step = 1;
  module.mtp_layers = 0;
  if (model.window(model.layers - 1) == 0) module.sliding_window = 0;
  module.full_attention_every = 0;
  if (module.no_rotary_every > 0) module.no_rotary_every = model.rotates(model.layers - 1) ? 0 : 1;
  module.delta = {};  // an attention layer (Qwen3-Next's mtp)
  return module;
}

}  // namespace moebius
