// The forward fragment of one pipeline stage: embedding or receive, layers, then send or head and loss.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/separate_kernels.h"
#include "workloads/routing/drawn_routes.h"
#include "workloads/schedule/context_part.h"
#include "workloads/schedule/local_batch.h"
#include "workloads/training/layers/layer_writer.h"
#include "workloads/training/packing.h"

namespace moebius {
namespace {

class StageWriter {
 public:
  StageWriter(const LoweringInput& input, const StageSpec& stage, RouteCache& routes, ForwardPass& pass)
      : input_(input), stage_(stage), routes_(routes), pass_(pass), writer_(input, stage, pass) {
    if (stage.packed) add_packed(stage.packed);
    const BatchPtr cut = stage.packed ? nullptr : cut_in_chunks(*input.workload, model().attention_chunk);
    if (cut) pass_.local_batch = builder().add_batch(cut);
    pass.builder.scaling = plan().scaling;
    pass.builder.launch = plan().launch;
    pass.builder.tensor_chunks = plan().tp_chunks;
    pass.builder.fusions = plan().fusions;
    pass.builder.captured = plan().captured;
    // Without others there is no exchange that holds them.
    if (plan().communication_sms > 0 && plan().expert_ranks() > 1)
      pass.builder.compute_units = static_cast<std::int16_t>(-plan().communication_sms);
  }

  void write() {
    TensorId x = write_entry();
    for (int i = 0; i < stage_.slice.num_layers; ++i) x = write_layer(x, stage_.slice.first_layer + i);
    if (stage_.slice.has_head) {
      write_tail(x);
    } else if (stage_.next != GroupRole::kNone) {
      write_send(x);
    } else {
      hand_on(x);
    }
    drop_unread();
  }

 private:
  void add_packed(const BatchPtr& packed) {
    pass_.batch = builder().add_batch(packed);
    pass_.local_batch = builder().add_batch(local_batch(packed, model().attention_chunk));
  }

  const TrainingPlan& plan() const { return *input_.plan; }
  const Model& model() const { return *input_.model; }
  FragmentBuilder& builder() { return pass_.builder; }
  std::int64_t tokens() const { return tokens_per_rank(input_); }  // between blocks
  std::int64_t whole_tokens() const {
    return tokens() * (plan().sequence_parallel ? plan().tp : 1);
  }  // inside them

  // Token ids and, on the last stage, labels: stream i is the tokens i positions on.
  void write_input() {
    const int streams = 1 + (stage_.slice.has_head ? 1 + model().mtp_layers : 1);
    streams_.clear();
    for (int i = 0; i < streams; ++i)
      streams_.push_back(builder().transient(whole_tokens(), 1, DType::kInt32, Role::kInput));
    if (input_.workload->input_ahead > 0) return take_loaded();
    Op op = input_op(input_, whole_tokens(), streams);
    op.batch = pass_.batch;
    writer_.emit(op, {}, streams_);
  }

  void take_loaded() {
    pass_.read = pass_.streams = streams_;
    for (const TensorId id : streams_) {
      Tensor& tensor = builder().tensor(id);
      tensor.scope = Scope::kMicrobatch;
      tensor.memory = MemoryKind::kActivations;
      tensor.key = microbatch_key(stage_.chunk, id);
    }
  }

  // The first stage needs no labels, the last one may need no tokens.
  void drop_unread() {
    const Fragment& fragment = builder().fragment();
    std::erase_if(pass_.read, [&](TensorId id) {
      return std::none_of(fragment.ops.begin(), fragment.ops.end(), [&](const Op& op) {
        const auto inputs = fragment.operands.begin() + op.first_tensor;
        return std::find(inputs, inputs + op.num_inputs, id) != inputs + op.num_inputs;
      });
    });
  }

  TensorId embedding_weight() {
    const std::int64_t local = model().vocabulary / plan().tp;
    return builder().add({.scope = Scope::kRank,
                          .memory = MemoryKind::kWeights,
                          .role = Role::kEmbedding,
                          .layer = -1,
                          .key = parameter_key(Role::kEmbedding, -1, Part::kWeight),
                          .rows = local,
                          .columns = model().hidden,
                          .first_row = stage_.shard.tensor * local,
                          .init = 1});
  }

  TensorId write_embedding(TensorId tokens_in) {
    const std::int64_t m = whole_tokens();
    const TensorId x = builder().transient(m, model().hidden, DType::kBf16, Role::kEmbedding);
    writer_.emit({.kind = OpKind::kEmbedding,
                  .role = Role::kEmbedding,
                  .shape = {.m = m, .n = model().vocabulary / plan().tp, .k = model().hidden}},
                 {tokens_in, embedding_weight()}, {x});
    return writer_.leave_tensor_parallel(x);
  }

  TensorId write_entry() {
    writer_.begin_block(-1, false);
    if (stage_.slice.has_embedding || stage_.slice.has_head) write_input();
    if (stage_.slice.has_embedding) return write_embedding(streams_[0]);
    if (stage_.previous == GroupRole::kNone) return pass_.received = handed_on();
    const std::int64_t rows = tokens() / plan().message_parts();
    const TensorId x = builder().transient(rows, model().hidden, DType::kBf16, Role::kPipeline);
    writer_.emit(pipeline_op(OpKind::kRecv, Lane::kRecvForward, stage_.previous), {}, {x});
    if (rows == tokens()) return pass_.received = x;
    return pass_.received =
               writer_.collective(OpKind::kAllGather, GroupRole::kTensor, Lane::kTensorComm, x, tokens());
  }

  // From the stage before on the same rank, which hand_on() of its forward pass wrote.
  TensorId handed_on() {
    return builder().add({.scope = Scope::kMicrobatch,
                          .memory = MemoryKind::kActivations,
                          .role = Role::kResidual,
                          .layer = static_cast<std::int16_t>(stage_.slice.first_layer - 1),
                          .key = handed_key(stage_.stage, Phase::kForward),
                          .rows = tokens(),
                          .columns = model().hidden});
  }

  void hand_on(TensorId x) {
    Tensor& tensor = builder().tensor(x);
    tensor.scope = Scope::kMicrobatch;
    tensor.memory = MemoryKind::kActivations;
    tensor.key = handed_key(stage_.stage + 1, Phase::kForward);
    pass_.sent = x;
  }

  Op pipeline_op(OpKind kind, Lane lane, GroupRole group) const {
    Op op{.kind = kind,
          .lane = lane,
          .role = Role::kPipeline,
          .group = group,
          .match = stage_match(StageMatch::kForward,
                               (kind == OpKind::kSend ? stage_.stage : stage_.stage - 1) / plan().pp),
          .shape = {.m = tokens() / plan().message_parts(), .n = model().hidden}};
    op.payload = {static_cast<double>(op.shape.m * model().hidden) * element_bytes(DType::kBf16)};
    if (kind == OpKind::kSend) cut_message(op, plan(), stage_.shard.tensor);
    return op;
  }

  void write_send(TensorId x) {
    writer_.begin_block(-1, false);
    writer_.emit(pipeline_op(OpKind::kSend, Lane::kSendForward, stage_.next), {x}, {});
    pass_.sent = x;
  }

  // `gathered`: as experts see it that several ranks share, with the tokens of all of them.
  RoutePtr route(int layer, int gathered = 1) {
    const Experts& experts = model().experts;
    const ExpertGroups groups = expert_groups(plan(), experts, input_.ranks_per_node);
    const ExpertCapacity capacity = capacity_of(plan(), experts, tokens(), input_.workload->micro_batch);
    return routes_.get({.seed = input_.workload->seed,
                        .step = stage_.step,
                        .microbatch = stage_.microbatch,
                        .layer = layer,
                        .popularity = input_.workload->popularity,
                        .ranks = plan().ep,
                        .ranks_per_node = std::max(1, input_.ranks_per_node / plan().expert_tp),
                        .experts = experts.routed,
                        .active = experts.active,
                        .groups = groups.all,
                        .active_groups = groups.active,
                        .tokens = static_cast<int>(tokens()),
                        .capacity = capacity.rows,
                        .capacity_groups = capacity.groups,
                        .filled = plan().fills_buffers(),
                        .gathered = gathered});
  }

  RoutePtr gathered_route(int layer) {
    return plan().expert_tp > 1 ? route(layer, plan().expert_tp) : nullptr;
  }

  TensorId write_layer(TensorId x, int layer) {
    const bool due = plan().recompute == RecomputePolicy::kFull && (layer + 1) % plan().recompute_every == 0;
    const bool full = due || (stage_.recompute && stage_.recompute->full);
    const std::int32_t first = num_ops();
    writer_.begin_block(layer, full);
    x = model().is_parallel() ? write_parallel_block(writer_, x, write_grouped_query)
                              : write_attention_and_mlp(x, layer, full);
    if (full) end_recomputed_layer(layer, first);
    return x;
  }

  TensorId write_attention_and_mlp(TensorId x, int layer, bool full) {
    x = write_attention(writer_, x);
    // With full recompute only the input of the layer, or of the first one of its group, is kept.
    if (full) pass_.recomputable.insert(num_ops() - 1);
    writer_.begin_block(layer, full);
    return model().is_moe_layer(layer) ? write_moe(writer_, x, route(layer), gathered_route(layer))
                                       : write_dense_mlp(writer_, x);
  }

  std::int32_t num_ops() { return static_cast<std::int32_t>(builder().fragment().ops.size()); }

  // Layers of a group run again as a whole.
  void end_recomputed_layer(int layer, std::int32_t first) {
    const int index = layer - stage_.slice.first_layer;
    const bool in_stage = index < stage_.slice.num_layers;  // no MTP module, which is a group of its own
    const bool opens = !in_stage || index % plan().recompute_layers == 0;
    const bool closes =
        !in_stage || index + 1 == stage_.slice.num_layers || (index + 1) % plan().recompute_layers == 0;
    if (opens) pass_.again.emplace_back(first, first);
    pass_.again.back().second = num_ops();
    if (!closes) pass_.recomputable.insert(num_ops() - 1);
  }

  void write_tail(TensorId x) {
    write_head(x, Role::kFinalNorm, 1, 1);
    if (input_.workload->forward_only) return;  // scored by the main head alone
    for (int i = 0; i < model().mtp_layers; ++i) x = write_mtp(x, i);
  }

  // Multi-token prediction (DeepSeek-V3, section 2.2): the hidden state and the embedding of the next token,
  // normed and projected together, go through one more layer and the shared head.
  TensorId write_mtp(TensorId x, int index) {
    const int layer = model().layers + index;
    writer_.begin_block(layer, false);
    const TensorId ahead = write_embedding(streams_[1 + index]);
    const TensorId a = writer_.norm(x, Role::kMtpHiddenNorm);
    const TensorId b = writer_.norm(ahead, Role::kMtpEmbeddingNorm);
    const TensorId both =
        builder().transient(tokens(), 2 * model().hidden, DType::kBf16, Role::kMtpProjection);
    writer_.emit({.kind = OpKind::kConcat,
                  .role = Role::kMtpProjection,
                  .shape = {.m = tokens(), .n = 2 * model().hidden}},
                 {a, b}, {both});
    TensorId h = writer_.linear(both, {Role::kMtpProjection, model().hidden, 2 * model().hidden});
    h = write_layer(h, layer);
    constexpr double kMtpLossWeight = 0.3;  // DeepSeek-V3, section 4.2: lambda of the first 10T tokens
    write_head(h, Role::kFinalNorm, 2 + index, kMtpLossWeight / model().mtp_layers);
    return h;
  }

  // The loss of the token `ahead` positions on.
  void write_head(TensorId x, Role norm_role, int ahead, double loss_weight) {
    writer_.begin_block(builder().layer, false);
    const TensorId normed = writer_.enter_tensor_parallel(writer_.norm(x, norm_role));
    const std::int64_t m = whole_tokens();
    const std::int64_t n = model().vocabulary / plan().tp;
    const TensorId logits = builder().transient(m, n, DType::kBf16, Role::kHead);
    writer_.emit({.kind = OpKind::kGemm, .role = Role::kHead, .shape = {.m = m, .n = n, .k = model().hidden}},
                 {normed, head_weight()}, {logits});
    write_loss(logits, ahead, loss_weight);
  }

  // One matrix for the main head and those of all MTP modules; with tied embeddings, the embedding.
  TensorId head_weight() {
    if (model().tied_embeddings) return embedding_weight();
    const std::int64_t local = model().vocabulary / plan().tp;
    return builder().add({.scope = Scope::kRank,
                          .memory = MemoryKind::kWeights,
                          .role = Role::kHead,
                          .layer = -1,
                          .key = parameter_key(Role::kHead, -1, Part::kWeight),
                          .rows = local,
                          .columns = model().hidden,
                          .first_row = stage_.shard.tensor * local,
                          .init = 1 / std::sqrt(static_cast<double>(model().hidden))});
  }

  // Shape::heads of the two ops.
  int kernels_of_loss() const {
    switch (plan().loss) {
      case LossKernels::kFused:
        return 0;
      case LossKernels::kSeparate:
        return kSeparateKernels;
      case LossKernels::kAutocast:
        return kAutocastKernels;
    }
    return 0;
  }

  void write_loss(TensorId logits, int ahead, double loss_weight) {
    const TensorId labels = streams_[ahead];
    const std::int64_t m = writer_.rows(logits), n = writer_.columns(logits);
    TensorId stats = builder().transient(m, 3, DType::kFp32, Role::kLoss);
    std::vector<TensorId> outputs{stats}, read{logits, labels};
    const int kernels = kernels_of_loss();
    if (kernels > 0) outputs.push_back(builder().transient(m, n, DType::kFp32, Role::kLoss));
    writer_.emit({.kind = OpKind::kCrossEntropyStats,
                  .role = Role::kLoss,
                  .shape = {.m = m, .n = n, .heads = kernels}},
                 read, outputs);
    outputs.erase(outputs.begin());
    if (plan().tp > 1)
      stats =
          writer_.collective(OpKind::kAllGather, GroupRole::kTensor, Lane::kTensorComm, stats, m * plan().tp);
    if (input_.workload->forward_only) return;  // the statistics are the log-probabilities of the labels
    const TensorId loss = builder().add({.scope = Scope::kRank,
                                         .memory = MemoryKind::kActivations,
                                         .dtype = DType::kFp32,
                                         .role = Role::kLoss,
                                         .layer = -1,
                                         .key = parameter_key(Role::kLoss, -1, Part::kWeight),
                                         .rows = 1,
                                         .columns = 1});
    const TensorId gradient = builder().transient(m, n, DType::kBf16, Role::kLoss);
    read.push_back(stats);
    read.insert(read.end(), outputs.begin(), outputs.end());  // FP32 logits, if they stand in memory
    const double batch_tokens =
        stage_.packed ? stage_.counted_tokens
                      : static_cast<double>(input_.workload->global_batch * input_.workload->sequence_length);
    writer_.emit(
        {.kind = OpKind::kCrossEntropy,
         .role = Role::kLoss,
         .batch = pass_.batch,
         .scale = static_cast<float>(loss_weight / batch_tokens),
         .shape = {.m = m, .n = n, .k = stage_.packed ? ahead : 0, .groups = plan().tp, .heads = kernels}},
        read, {loss, gradient});
  }

  const LoweringInput& input_;
  const StageSpec& stage_;
  RouteCache& routes_;
  ForwardPass& pass_;
  LayerWriter writer_;
  std::vector<TensorId> streams_;
};

}  // namespace

std::string StageSpec::name() const {
  return chunk == 0 ? fmt::format("stage {}", stage) : fmt::format("stage {}, chunk {}", stage, chunk);
}

std::int64_t tokens_per_rank(const LoweringInput& input) {
  const TrainingPlan& plan = *input.plan;
  const std::int64_t tokens = input.workload->micro_batch * input.workload->sequence_length / plan.cp;
  return plan.sequence_parallel ? tokens / plan.tp : tokens;
}

void cut_message(Op& send, const TrainingPlan& plan, int member) {
  if (plan.message_parts() == 1) return;
  send.shape.k = plan.message_parts();
  send.shape.kv = member * send.shape.m;
}

RoutePtr RouteCache::get(RouteSpec spec) {
  if (spec.popularity.kind == PopularityKind::kBalanced) {
    spec.layer = 0;
    spec.step = 0;
  }
  if (!course_) course_.emplace(spec.popularity, spec.seed, spec.experts, spec.active);
  spec.weights = course_->at(spec.layer, spec.step);
  for (const RoutePtr& route : routes_) {
    if (route->spec() == spec) return route;
  }
  constexpr std::size_t kKept = 512;  // more than the layers of one step; older ones go with their fragments
  if (routes_.size() == kKept) routes_.erase(routes_.begin());
  routes_.push_back(drawn_route(spec));
  return routes_.back();
}

Op input_op(const LoweringInput& input, std::int64_t tokens, int streams) {
  return {.kind = OpKind::kInput,
          .lane = Lane::kCompute,
          .role = Role::kInput,
          .match = input.plan->zigzag() ? kRingStep : 0,
          .shape = {.m = tokens,
                    .n = input.model->vocabulary,
                    .k = streams - 1,
                    .groups = static_cast<std::int32_t>(input.workload->micro_batch)}};
}

ForwardPass lower_forward(const LoweringInput& input, const StageSpec& stage, RouteCache& routes) {
  ForwardPass pass("forward " + stage.name(), stage.meetings);
  StageWriter(input, stage, routes, pass).write();
  return pass;
}

}  // namespace moebius
