#include "workloads/serving/lower.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "workloads/serving/attention.h"
#include "workloads/serving/batching.h"
#include "workloads/serving/expert_moves_op.h"
#include "workloads/serving/experts.h"

namespace moebius {
namespace {

WeightFormat dense_format(const ServingPlan& plan) {
  const WeightFormat format = format_of(plan.gemm);
  return {plan.gemm, plan.weights.value_or(format.stored)};
}

WeightFormat expert_format(const ServingPlan& plan) {
  const WeightFormat format = format_of(plan.expert_gemm.value_or(plan.gemm));
  return {format.arithmetic, plan.expert_weights.value_or(format.stored)};
}

class IterationWriter {
 public:
  IterationWriter(const ServingShape& shape, const Iteration& iteration, ForwardPass& pass)
      : shape_(shape),
        it_(iteration),
        input_(shape.input(shape.decodes(*iteration.batch))),
        pass_(pass),
        writer_(input_, {.slice = {}, .shard = iteration.shard}, pass),
        parts_(latent_parts(shape.job.model, *iteration.batch)) {
    batch_ = static_cast<std::int32_t>(pass.builder.add_batch(iteration.batch));
    writer_.use_formats(dense_format(shape.job.plan), expert_format(shape.job.plan));
  }

  void write() {
    writer_.begin_block(-1, false);
    if (it_.moves) write_expert_moves(builder(), it_.moves);
    TensorId x = write_entry();
    for (int layer = 0; layer < model().layers; ++layer) x = write_layer(x, layer);
    writer_.begin_block(-1, false);
    write_exit(x);
  }

 private:
  const Model& model() const { return shape_.job.model; }
  FragmentBuilder& builder() { return pass_.builder; }
  std::int64_t rows() const { return it_.batch->rows(); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(it_.batch->sequences.size()); }
  // Rows that logits are needed of: the last of a prompt, all of a decoding sequence.
  std::int64_t sampled() const {
    std::int64_t rows = 0;
    for (const BatchSequence& s : it_.batch->sequences)
      rows += s.count <= 1 + shape_.job.plan.drafts ? s.count : 1;
    return rows;
  }
  std::int64_t local_vocabulary() const { return model().vocabulary / shape_.plan.tp; }

  TensorId generated() {
    const ServingWorkload& work = shape_.job.workload;
    return builder().add({.scope = Scope::kRank,
                          .memory = MemoryKind::kCache,
                          .dtype = DType::kInt32,
                          .role = Role::kTokens,
                          .layer = -1,
                          .key = generated_key(),
                          .rows = work.requests,
                          .columns = work.output.high});
  }

  // A matrix over the vocabulary, cut by rows over the tensor group.
  TensorId vocabulary_weight(Role role, double init) {
    return builder().add({.scope = Scope::kRank,
                          .memory = MemoryKind::kWeights,
                          .role = role,
                          .layer = -1,
                          .key = parameter_key(role, -1, Part::kWeight),
                          .rows = local_vocabulary(),
                          .columns = model().hidden,
                          .first_row = it_.shard.tensor * local_vocabulary(),
                          .init = init});
  }
  TensorId embedding_weight() { return vocabulary_weight(Role::kEmbedding, 1); }
  TensorId head_weight() {
    if (model().tied_embeddings) return embedding_weight();
    return vocabulary_weight(Role::kHead, 1 / std::sqrt(static_cast<double>(model().hidden)));
  }

  TensorId write_entry() {
    const TensorId tokens = builder().transient(rows(), 1, DType::kInt32, Role::kInput);
    writer_.emit(
        {.kind = OpKind::kInput,
         .role = Role::kInput,
         .batch = batch_,
         .shape = {.m = rows(), .n = model().vocabulary, .groups = static_cast<std::int32_t>(sequences())}},
        {generated()}, {tokens});
    const TensorId x = builder().transient(rows(), model().hidden, DType::kBf16, Role::kEmbedding);
    writer_.emit({.kind = OpKind::kEmbedding,
                  .role = Role::kEmbedding,
                  .shape = {.m = rows(), .n = local_vocabulary(), .k = model().hidden}},
                 {tokens, embedding_weight()}, {x});
    const TensorId entered = writer_.leave_tensor_parallel(x);
    return it_.from_hidden ? write_projection(entered) : entered;
  }

  // The hidden state is as large as the embedding, in whose place it is read here.
  TensorId write_projection(TensorId x) {
    const std::int64_t hidden = model().hidden;
    const TensorId a = writer_.norm(x, Role::kMtpHiddenNorm), b = writer_.norm(x, Role::kMtpEmbeddingNorm);
    const TensorId both = builder().transient(rows(), 2 * hidden, DType::kBf16, Role::kMtpProjection);
    writer_.emit(
        {.kind = OpKind::kConcat, .role = Role::kMtpProjection, .shape = {.m = rows(), .n = 2 * hidden}},
        {a, b}, {both});
    return writer_.linear(both, {Role::kMtpProjection, hidden, 2 * hidden});
  }

  TensorId write_layer(TensorId x, int layer) {
    writer_.begin_block(layer, false);
    x = write_batch_attention(writer_, {it_.batch, batch_, shape_.cache_rows, shape_.job.plan.kv, parts_}, x);
    writer_.begin_block(layer, false);
    if (!model().is_moe_layer(layer)) return write_dense_mlp(writer_, x);
    const ServingPlan& plan = shape_.job.plan;
    if (!plan.replicated_experts()) return write_moe(writer_, x, it_.route(layer));
    return write_replicated_moe(writer_, x, it_.route(layer), plan.fold ? -1 : it_.shard.expert);
  }

  TensorId last_rows(TensorId x) {
    if (shape_.decodes(*it_.batch)) return x;
    const TensorId last = builder().transient(sampled(), model().hidden, DType::kBf16, Role::kHead);
    writer_.emit(
        {.kind = OpKind::kLastRows,
         .role = Role::kHead,
         .batch = batch_,
         .shape = {.m = rows(), .n = model().hidden, .groups = static_cast<std::int32_t>(sampled())}},
        {x}, {last});
    return last;
  }

  void write_exit(TensorId x) {
    const TensorId normed = writer_.enter_tensor_parallel(writer_.norm(last_rows(x), Role::kFinalNorm));
    const std::int64_t m = sampled(), n = local_vocabulary();
    const TensorId logits = builder().transient(m, n, DType::kFp32, Role::kHead);
    writer_.emit({.kind = OpKind::kGemm, .role = Role::kHead, .shape = {.m = m, .n = n, .k = model().hidden}},
                 {normed, head_weight()}, {logits});
    if (shape_.job.plan.host_sampling) return write_copy_of(logits);
    TensorId best = builder().transient(m, 2, DType::kFp32, Role::kTokens);
    writer_.emit({.kind = OpKind::kGreedySample, .role = Role::kTokens, .shape = {.m = m, .n = n}}, {logits},
                 {best});
    const int tp = shape_.plan.tp;
    if (tp > 1)
      best = writer_.collective(OpKind::kAllGather, GroupRole::kTensor, Lane::kTensorComm, best, m * tp);
    writer_.emit({.kind = OpKind::kNextToken,
                  .role = Role::kTokens,
                  .batch = batch_,
                  .shape = {.m = m, .n = shape_.job.workload.output.high, .groups = tp}},
                 {best}, {generated()});
  }

  // Each rank its part of the vocabulary. The ids that come back are a few bytes.
  void write_copy_of(TensorId logits) {
    Tensor copy = builder().fragment().tensors[logits];
    copy.on_host = true;
    const std::int64_t elements = copy.rows * copy.columns;
    writer_.emit({.kind = OpKind::kCopyToHost,
                  .dtype = copy.dtype,
                  .lane = Lane::kHostCopy,
                  .role = Role::kTokens,
                  .shape = {.m = elements},
                  .payload = copy.bytes()},
                 {logits}, {builder().add(copy)});
  }

  const ServingShape& shape_;
  const Iteration& it_;
  LoweringInput input_;
  ForwardPass& pass_;
  LayerWriter writer_;
  LatentParts parts_;
  std::int32_t batch_ = -1;
};

// Tokens travel to experts in the format of the products, and their results back in BF16.
TrainingPlan layers_plan(const ServingPlan& plan, bool decodes) {
  TrainingPlan layers;
  layers.tp = plan.tp;
  layers.dp = plan.dp;
  layers.ep = plan.ep;
  layers.expert_tp = plan.expert_tp();
  layers.exchange = decodes ? plan.decode_exchange : plan.prefill_exchange;
  layers.communication_sms = plan.overlap(decodes).communication_cores;
  layers.gemm = plan.gemm;
  layers.dispatch = plan.expert_gemm.value_or(plan.gemm);
  if (plan.gemm == DType::kFp32) layers.combine = DType::kFp32;
  layers.fused_quantise = true;
  layers.fold = plan.fold;
  return layers;
}

}  // namespace

ServingShape::ServingShape(const ServingJob& served)
    : job(served),
      plan(layers_plan(served.plan, true)),
      prefill(layers_plan(served.plan, false)),
      cache_rows(std::int64_t{cache_pages(served.plan, served.workload)} * served.plan.block_tokens) {}

bool ServingShape::decodes(const Batch& batch) const {
  return std::all_of(batch.sequences.begin(), batch.sequences.end(),
                     [&](const BatchSequence& s) { return s.count <= 1 + job.plan.drafts; });
}

std::uint32_t generated_key() {
  return parameter_key(Role::kTokens, -1, Part::kWeight);
}

ShardPosition shard_of(const RankClass& rank_class) {
  ShardPosition shard;
  shard.tensor = rank_class.group(GroupRole::kTensor).my_index;
  shard.expert = rank_class.group(GroupRole::kExpert).my_index;
  shard.expert_part = rank_class.group(GroupRole::kExpertTensor).my_index;
  return shard;
}

FragmentPtr lower_iteration(const ServingShape& shape, const Iteration& iteration) {
  const bool decodes = shape.decodes(*iteration.batch);
  ForwardPass pass(decodes ? "decode" : "prefill");
  const PhaseOverlap& overlap = shape.job.plan.overlap(decodes);
  if (overlap.two_batch)
    pass.builder.compute_units = static_cast<std::int16_t>(-overlap.communication_cores);
  pass.builder.launch = shape.job.plan.launch;
  if (shape.job.plan.fused) pass.builder.fusions = {Fusion::kResidual, Fusion::kHeads};
  const auto sequences = static_cast<int>(iteration.batch->sequences.size());
  if (pass.builder.launch == LaunchMode::kGraph && (!decodes || sequences > shape.job.plan.captured))
    pass.builder.launch = LaunchMode::kKernel;
  IterationWriter(shape, iteration, pass).write();
  return pass.builder.freeze_it();
}

}  // namespace moebius
