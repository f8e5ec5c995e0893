#include "workloads/study/search/probe_keys.h"

#include <algorithm>

#include <fmt/format.h>

namespace moebius {

std::string lowering_key(const TrainingPlan& p, const TrainingWorkload& work) {
  const auto bit = [](auto value) { return static_cast<int>(value); };
  std::string key = fmt::format("{} {} {} {} {} {} {} {} {} {} {}|", p.tp, p.dense_degree(), p.expert_tp,
                                p.tp_chunks, bit(p.sequence_parallel), p.ep, p.nodes_per_token, p.capacity,
                                p.cp, bit(p.context), work.micro_batch);
  if (p.capacity > 0) key += fmt::format("c{} {}|", bit(p.capacity_of_sequence), bit(p.expert_buffers));
  if (p.gather_passes) key += "tb|";
  if (p.recompute_stops) key += "es|";
  if (p.accumulation != Accumulation::kShards) key += fmt::format("a{}|", bit(p.accumulation));
  if (p.keeps_gathered()) key += fmt::format("k{} {}|", p.regather, bit(p.free_after_backward));
  key += fmt::format("{} {} {} {} {} {} {} {} {} {}|", bit(p.gemm), bit(p.dispatch), bit(p.combine),
                     bit(p.exchange), bit(p.gradients), bit(p.optimizer_states), bit(p.master),
                     bit(p.keeps_master), bit(p.scaling), bit(p.fused_quantise));
  if (p.keeps_history()) key += fmt::format("h{} {}|", bit(p.history_of_tensor_ranks), p.dp);
  key += fmt::format("{} {} {} {} {} {} {} {} {}|", bit(p.separate_accumulation), bit(p.loss), bit(p.biases),
                     bit(p.eager_elementwise), bit(p.separate_norm_grad), bit(p.separate_update),
                     bit(p.attention), bit(p.launch), p.fusions.size());
  key += fmt::format("{} {} {} {}|", bit(p.separate_routing), bit(p.expert_by_expert) + bit(p.expert_modules),
                     bit(p.clip > 0), bit(p.cut_messages));
  key += fmt::format("{} {} {} {}|{} {} {} {} {}|", bit(p.recompute), p.recompute_layers, p.recompute_every,
                     bit(p.recompute_whole), bit(p.overlap_dispatch_combine), bit(p.overlap_tensor_gradients),
                     bit(p.overlap_two_batch), p.communication_sms, p.tensor_sms);
  for (const RecomputeOp op : p.recompute_ops) key += fmt::format("{},", bit(op));
  for (const Fusion fusion : p.fusions) key += fmt::format("f{},", bit(fusion));
  for (const GraphModule module : p.captured) key += fmt::format("c{},", bit(module));
  key += fmt::format("o{}{}{}{}|", bit(p.offload.optimizer), bit(p.offload.parameters),
                     bit(p.offload.gradients), bit(p.offload.activations));
  key +=
      fmt::format("z{} d{} s{} g{} p{} b{} w{}{} {}", p.zero, p.zero > 0 ? p.dp : 0, p.shard, p.group_layers,
                  p.prefetch, bit(p.shard_buffers), bit(p.half_weights), bit(p.overlap_weights),
                  bit(p.schedule >= PipelineKind::kZbH1) + bit(p.schedule >= PipelineKind::kDualPipe));
  return key;
}

bool layers_stand_alone(const TrainingPlan& plan) {
  const auto& ops = plan.recompute_ops;
  const bool ends_differ = plan.recompute_stops && plan.recompute_layers > 1;  // of a group's layers
  return plan.recompute != RecomputePolicy::kHybrid && plan.recompute_every == 1 && !ends_differ &&
         std::find(ops.begin(), ops.end(), RecomputeOp::kMlpDown) == ops.end();
}

std::string groups_key(const TrainingPlan& p) {
  const int sharers = !p.keeps_history() ? 0 : p.history_of_tensor_ranks ? 1 : 2;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", p.tp, p.dense_degree(), p.expert_tp, p.ep, p.cp,
                     p.dp, p.pp, static_cast<int>(p.schedule), p.zero > 0 ? p.shard : 0,
                     p.keeps_gathered() ? p.regather : 0, sharers);
}

std::string stage_key(const Model& model, const StageSpec& spec) {
  std::string key = fmt::format("#{}{}{}{}:", static_cast<int>(spec.slice.has_embedding),
                                static_cast<int>(spec.slice.has_head), static_cast<int>(spec.previous),
                                static_cast<int>(spec.next));
  for (int i = 0; i < spec.slice.num_layers; ++i) {
    const int layer = spec.slice.first_layer + i;
    key += fmt::format("{}{}.{}{} ", model.is_moe_layer(layer) ? 'e' : 'd', model.window(layer),
                       model.chunk(layer), model.rotates(layer) ? "" : "p");
  }
  return key;
}

}  // namespace moebius
