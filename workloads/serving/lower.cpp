#include "workloads/serving/lower.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "workloads/schedule/local_batch.h"
#include "workloads/serving/attention.h"
#include "workloads/serving/expert_moves_op.h"
#include "workloads/serving/experts.h"
#include "workloads/serving/request_lengths.h"
#include "workloads/serving/token_ends.h"

namespace moebius {

WeightFormat expert_format(const ServingPlan& plan) {
  const WeightFormat format = format_of(plan.expert_gemm.value_or(plan.gemm));
  return {format.arithmetic, plan.expert_weights.value_or(format.stored)};
}

namespace {

WeightFormat dense_format(const ServingPlan& plan) {
  const WeightFormat format = format_of(plan.gemm);
  return {plan.gemm, plan.weights.value_or(format.stored)};
}

class IterationWriter {
 public:
  IterationWriter(const ServingShape& shape, const Iteration& iteration, ForwardPass& pass)
      : shape_(shape),
        it_(iteration),
        sharing_(shape.job.plan.sharing(shape.job.plan.decodes(*iteration.batch))),
        input_(shape.input(shape.job.plan.decodes(*iteration.batch))),
        pass_(pass),
        writer_(input_, {.slice = {}, .shard = iteration.shard}, pass),
        parts_(latent_parts(shape.job.model, *iteration.batch,
                            {shape.job.plan.absorbed_below, shape.job.plan.drafts, iteration.absorbed})),
        local_(local_batch(iteration.batch, shape.job.model.attention_chunk)) {
    batch_ = pass.builder.add_batch(iteration.batch);
    set_formats(shape.job.plan, writer_);
    // NOLINTNEXTLINE(clang-analyzer-optin.cplusplus.UninitializedObject): its constructor stands in another
    // file
    writer_.use_slots(iteration.first_slots);
    writer_.share_rows(iteration.batch->rows());
  }

  void write() {
    writer_.begin_block(-1, false);
    if (it_.moves) write_expert_moves(pass_.builder, it_.moves);
    ArrivedExperts arrived;
    if (it_.transfer) arrived = write_expert_transfer(writer_, it_.transfer, slots_of_rank());
    TensorId x = shape_.job.plan.enters() ? write_entry(writer_, shape_.job, batch_)
                                          : write_handed_on(writer_, shape_.job.plan, it_.batch->rows());
    if (it_.from_hidden) x = write_projection(x);
    for (int layer = 0; layer < model().layers; ++layer) x = write_layer(x, layer);
    writer_.begin_block(-1, false);
    if (shape_.job.plan.exits()) write_exit(writer_, shape_.job, batch_, x);
    if (it_.transfer) write_placing(writer_, *it_.transfer, arrived);
  }

 private:
  const Model& model() const { return shape_.job.model; }
  int slots_of_rank() const { return shape_.job.plan.slots_of(model().experts) / shape_.job.plan.ep; }

  // A module that guesses reads the hidden state in the place of an embedding, which is as large.
  TensorId write_projection(TensorId x) {
    const std::int64_t rows = writer_.rows(x), hidden = model().hidden;
    const TensorId a = writer_.norm(x, Role::kMtpHiddenNorm), b = writer_.norm(x, Role::kMtpEmbeddingNorm);
    const TensorId both = pass_.builder.transient(rows, 2 * hidden, DType::kBf16, Role::kMtpProjection);
    writer_.emit(
        {.kind = OpKind::kConcat, .role = Role::kMtpProjection, .shape = {.m = rows, .n = 2 * hidden}},
        {a, b}, {both});
    return writer_.linear(both, {Role::kMtpProjection, hidden, 2 * hidden});
  }

  TensorId write_layer(TensorId x, int layer) {
    writer_.begin_block(layer, false);
    const ServingPlan& plan = shape_.job.plan;
    const CachedBatch batch{it_.batch, batch_, shape_.cache_rows, plan.kv,      plan.attention,
                            parts_,    local_, it_.whole,         shape_.states};
    if (model().is_parallel()) return write_parallel_block_of_batch(writer_, batch, x);
    x = write_batch_attention(writer_, batch, x);
    writer_.begin_block(layer, false);
    if (!model().is_moe_layer(layer)) return write_dense_mlp(writer_, x);
    return write_routed(x, it_.route(layer));
  }

  TensorId write_routed(TensorId x, const RoutePtr& route) {
    const int member = shape_.job.plan.fold ? -1 : it_.shard.expert;
    switch (sharing_) {
      case ExpertSharing::kAlone:
      case ExpertSharing::kDispatch:
        return write_moe(writer_, x, route, {}, true);
      case ExpertSharing::kAllReduce:
        return write_replicated_moe(writer_, x, route, member);
      case ExpertSharing::kGather:
        break;
    }
    return write_gathered_moe(writer_, x, route, member, it_.longest);
  }

  const ServingShape& shape_;
  const Iteration& it_;
  ExpertSharing sharing_;
  LoweringInput input_;
  ForwardPass& pass_;
  LayerWriter writer_;
  LatentParts parts_;
  BatchPtr local_;
  std::int32_t batch_ = -1;
};

std::vector<Fusion> fusions_of(const ServingPlan& plan) {
  std::vector<Fusion> fusions;
  if (plan.fused) fusions = {Fusion::kResidual, Fusion::kHeads, Fusion::kLatents};
  if (plan.fused && plan.fused_head_norms) fusions.push_back(Fusion::kHeadNorms);
  if (plan.fused && plan.fused_append) fusions.push_back(Fusion::kAppend);
  if (plan.fused_reduction) fusions.push_back(Fusion::kReduced);
  if (plan.fused_reduction && plan.quantised_reduction) fusions.push_back(Fusion::kReducedOperand);
  if (plan.quantised_output) fusions.push_back(Fusion::kOutput);
  return fusions;
}

// Tokens travel to experts in the format of the products, and their results back in BF16. What all ranks
// gather is quantised behind the gather where its scales are found on the spot: vLLM (AgRsAll2AllManager),
// SGLang (dp_attention) and, of scales by block, TensorRT-LLM (fused_moe_cutlass) gather BF16; NVFP4 goes as
// it is.
DType travels_as(DType product, Algorithm exchange) {
  return exchange == Algorithm::kRing && product == DType::kFp8 ? DType::kBf16 : product;
}

TrainingPlan layers_plan(const ServingPlan& plan, bool decodes) {
  TrainingPlan layers;
  layers.tp = plan.tp;
  layers.dp = plan.replicas();
  layers.cp = plan.cp;
  layers.ep = plan.ep;
  layers.expert_tp = plan.ranks_of_expert();
  layers.sequence_parallel = plan.sequence_parallel(decodes);
  layers.exchange = plan.exchange(decodes);
  if (plan.sharing(decodes) == ExpertSharing::kGather) layers.exchange = Algorithm::kRing;
  layers.communication_sms = plan.overlap(decodes).communication_cores;
  layers.gemm = plan.gemm;
  layers.dispatch = travels_as(plan.expert_gemm.value_or(plan.gemm), layers.exchange);
  if (plan.gemm == DType::kFp32) layers.combine = DType::kFp32;
  layers.fused_quantise = plan.fused_quantise;
  layers.fold = plan.fold;
  return layers;
}

}  // namespace

// Iterations with prompts are graphs between their attention, whose own launches are not counted.
LaunchMode launch_of(const ServingPlan& plan, const Batch& batch, bool decodes) {
  if (plan.launch != LaunchMode::kGraph) return plan.launch;
  const bool replayed = decodes ? static_cast<int>(batch.sequences.size()) <= plan.captured
                                : batch.rows() <= plan.captured_prompts;
  return replayed ? LaunchMode::kGraph : LaunchMode::kKernel;
}

void set_kernels(const ServingPlan& plan, LaunchMode launch, FragmentBuilder& builder) {
  builder.launch = launch;
  builder.one_expert_call = plan.one_expert_call;
  builder.fusions = fusions_of(plan);
}

ServingShape::ServingShape(const ServingJob& served)
    : job(served),
      plan(layers_plan(served.plan, true)),
      prefill(layers_plan(served.plan, false)),
      cache_rows(std::int64_t{cache_pages(served.plan, served.workload)} * served.plan.block_tokens),
      states(std::int64_t{served.plan.max_batch} + served.plan.padding_rows()) {}

void set_formats(const ServingPlan& plan, LayerWriter& writer) {
  writer.use_formats(dense_format(plan), expert_format(plan));
}

ShardPosition shard_of(const RankClass& rank_class) {
  ShardPosition shard;
  shard.tensor = rank_class.group(GroupRole::kTensor).my_index;
  shard.expert = rank_class.group(GroupRole::kExpert).my_index;
  shard.expert_part = rank_class.group(GroupRole::kExpertTensor).my_index;
  return shard;
}

FragmentPtr lower_iteration(const ServingShape& shape, const Iteration& iteration) {
  const bool decodes = shape.job.plan.decodes(*iteration.batch);
  ForwardPass pass(decodes ? "decode" : "prefill");
  const PhaseOverlap& overlap = shape.job.plan.overlap(decodes);
  if (overlap.two_batch) pass.builder.compute_units = static_cast<std::int16_t>(-overlap.communication_cores);
  const LaunchMode launch =
      iteration.launch ? *iteration.launch : launch_of(shape.job.plan, *iteration.batch, decodes);
  set_kernels(shape.job.plan, launch, pass.builder);
  IterationWriter(shape, iteration, pass).write();
  return pass.builder.freeze_it();
}

}  // namespace moebius
